"""Opening a link in the user's web browser, where there is a display."""

import os
import sys
import webbrowser


def has_display() -> bool:
    """Whether there is a display. Without one, `webbrowser` may start a text browser in this terminal."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_in_browser(url: str) -> bool:
    """Open a link; false where no browser can be started."""
    return has_display() and webbrowser.open(url)
