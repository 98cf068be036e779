"""Open work: a tool call of a client between our decision and the client's report of its end.

The hook server opens it, the tool `client_work` plans it and waits for its end, and the hook server reports the end.
Held in memory only; after a restart, `client_work` makes it again from the input of a running call.
"""

import secrets
from collections.abc import Callable

import anyio

from handrail.clients.hook_event import HookEvent, Json, Work
from handrail.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEnd:
    """How a client's work ended, as the client reports it."""

    output: str = ""
    exit_code: int | None = None
    failed: bool = False
    unknown: str = ""
    """Why the client reported nothing, as a sentence; then `output`, `exit_code` and `failed` mean nothing."""
    by_files: bool = False
    """The client had begun: it is done if the files hold what was allowed."""


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """The process of a client that waits for a hook."""

    pid: int
    start: int
    """The start time in the kernel's ticks: a pid is used again."""
    name: str


class OpenWork:
    """One tool call of a client."""

    def __init__(
        self,
        event: HookEvent,
        read: Callable[[Json], Work],
        edits: str,
        process: ClientProcess | None,
        id: str = "",
        edit_notice: str = "",
    ) -> None:
        """`read` gives the work of an edited input, and raises ValueError; `edits` is why a person cannot edit it.

        `edit_notice` is what the model learns of an edit, if it is not told in our words.
        """
        self.id = id or secrets.token_hex(8)
        self.event = event
        self.edits = edits
        self.edit_notice = edit_notice
        self.process = process
        self.decided = anyio.Event()
        """Set when the work may begin, or has been refused."""
        self._wanted = anyio.Event()
        """Set while a hook waits for the decision."""
        self._taken = False
        """An allow is being recorded for the hook that waits."""
        self.begun = False
        self.end: WorkEnd | None = None
        self.read_edited = read
        self._news = anyio.Event()

    def read(self, input: Json) -> Work:
        """What the call would do with this input, edited or not. Raises ValueError."""
        if input == self.event.input and self.event.work is not None:
            return self.event.work
        return self.read_edited(input)

    def want(self) -> None:
        """A hook waits for the decision."""
        self._wanted.set()

    def leave(self) -> bool:
        """No hook waits any more; False if an allow is already being recorded."""
        if not self._taken:
            self._wanted = anyio.Event()
        return not self._taken

    async def wait_wanted(self, seconds: float) -> bool:
        """Wait until a hook waits for the allow, and take it; False if none came in time."""
        with anyio.move_on_after(max(0.0, seconds)):
            await self._wanted.wait()
        self._taken = self._wanted.is_set()
        return self._taken

    def renew(self, repeated: "OpenWork") -> None:
        """The client asks again about the same work: from now on, this is how it asks."""
        self.event, self.edits, self.process = repeated.event, repeated.edits, repeated.process
        self.read_edited, self.edit_notice = repeated.read_edited, repeated.edit_notice

    def begin(self) -> None:
        """The work may begin: it was allowed, and that is on record."""
        self.begun = True
        self.decided.set()

    def report_end(self, end: WorkEnd) -> bool:
        """Report the end, once; False if it was reported before."""
        if self.end is not None:
            return False
        self.end = end
        self._news.set()
        return True

    def check_files(self) -> None:
        """Have it looked at whether the files already hold the allowed content; if not, the work stays open."""
        self._news.set()

    async def wait_news(self) -> WorkEnd | None:
        """Wait for the end; None if only the files are to be checked."""
        if self.end is None:
            await self._news.wait()
            self._news = anyio.Event()
        return self.end


OpenWorks = dict[str, OpenWork]
"""The open work by its id."""
