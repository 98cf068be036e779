"""The one line, said once in a home, that VS Code's terminals could be kept too.

Owns when it is said. Does not know how the profile is installed.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.places import Places

LINE = (
    "To have every terminal of VS Code kept like this one: `handrail shell --install-profile vscode` "
    "(shows the change, keeps a backup; said only this once)."
)


def offer(places: Places, say: Callable[[str], None]) -> None:
    """Say it to somebody who sits in VS Code, unless it was said before."""
    if os.environ.get("TERM_PROGRAM") != "vscode":
        return
    try:
        fd = os.open(places.state / "profile-offered", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:  # said before, or it could not be remembered that it was said
        return
    os.close(fd)
    say(LINE)
