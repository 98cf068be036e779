"""Hook events in our own terms: a client's report, its question, and the answer.

Each client has its own payload and its own answer format. A `HookDialect` translates both; the rest of Handrail knows
only these types. No I/O here.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, Protocol

from handrail.lazy_dataclass import dataclass

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
Json = dict[str, JsonValue]
CANARY_FIELD = "handrail_canary"
"""Marks the payload with which `handrail doctor` measures that a hook reaches the daemon."""
RUNS_EDITED = "Nothing: the client runs it as edited."
"""What a model learns of an edited input from most clients."""
CANARY_ANSWER = "Handrail's canary has reached the daemon."

HookKind = Literal[
    "before",  # a tool call is about to run: may be denied, edited, sometimes allowed
    "permission",  # the client would ask its user about a tool call: may be allowed or denied
    "after",  # a tool call has ended
    "session_started",
    "session_ended",
    "prompted",  # the user sent a prompt: the agent works
    "stopped",  # the agent's turn has ended: it is idle
    "notified",  # the client wants its user's attention
    "ignored",  # anything else; answered with no opinion
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of one file that a tool call would make.

    Either the whole new text (`content`), or replacements of old by new text in the current file, or a deletion.
    """

    path: str
    content: str | None = None
    replacements: tuple[tuple[str, str], ...] = ()
    replace_all: bool = False
    delete: bool = False
    move_to: str | None = None
    appended: bool = False
    """`content` is added to the end of the file instead of replacing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The effects of a client's tool call, as far as its input shows."""

    sort: Literal["command", "edit", "read", "fetch", "mcp", "harmless", "other"]
    """harmless: changes nothing outside of the agent, such as a to-do list. other: unknown, so it always asks."""
    commands: tuple[str, ...] = ()
    """Shell lines, in order."""
    cwd: str | None = None
    """The folder that the commands run in, if the input names one."""
    edits: tuple[Edit, ...] = ()
    paths: tuple[str, ...] = ()
    """Files and folders that it reads."""
    globs: tuple[str, ...] = ()
    """Of a search in file contents: which files it reads below these folders; empty for what the client takes."""
    urls: tuple[str, ...] = ()
    server: str = ""
    """The MCP server, for sort `mcp`."""
    server_tool: str = ""
    ours: bool = False
    """An MCP call to Handrail itself, by name and, where the client tells it, by source: it asks through its own call."""
    is_vouched: bool = False
    """`ours` rests on what the client tells about the source of the server, not on its name alone."""
    unreported: bool = False
    """The client sends no report of its end."""
    warning: str = ""
    """A fact that the person must read, such as a program that the client can type into without a hook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One report of a client's hook."""

    kind: HookKind
    session: str
    cwd: str
    transcript: str = ""
    """The client's own file of this conversation."""
    tool: str = ""
    """The client's own name of the tool, such as Bash."""
    input: Json = field(default_factory=dict[str, JsonValue])
    """The tool's input as the client has it: an edited input has the same shape."""
    call: str = ""
    """The client's id of the tool call; empty where the client gives none."""
    subagent: str = ""
    work: Work | None = None
    """For `before` and `permission`."""
    failed: bool = False
    """For `after`: the client reported an error, or a non-zero exit code."""
    output: str = ""
    """For `after`: the text of the result."""
    exit_code: int | None = None
    mode: str = ""
    """The client's permission mode, such as `bypassPermissions`."""
    message: str = ""
    """For `notified` and `stopped`: the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Our decision about a `before` or `permission` event."""

    effect: Literal["allow", "deny", "pass"]
    """pass: no opinion, the client goes on as without us."""
    reason: str = ""
    """For deny: never empty; the model reads it."""
    input: Json | None = None
    """The input as a person edited it, in the shape of `HookEvent.input`."""
    feedback: str = ""
    """For allow: what the person changed and said. The model reads it, where the client passes it on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """What the hook program prints, and its exit status."""

    stdout: str = ""
    stderr: str = ""
    status: int = 0


class HookDialect(Protocol):
    """Translates one client's hook payloads and answers."""

    name: str
    """As in `handrail hook NAME`."""
    clock_seconds: float
    """We answer within this time, because the client runs the tool when its own limit ends."""
    edits: str
    """Empty if a person can edit the input; else why not, as a sentence for the page."""
    edit_notice: str
    """What the client tells its model about an edited input, for the page; empty if it passes our words on."""

    def read(self, payload: Json, environment: Mapping[str, str]) -> HookEvent:
        """Parse a payload. Raises ValueError with a sentence if it is not this client's."""
        ...

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """The answer in the client's format."""
        ...
