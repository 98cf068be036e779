"""What a tool is: it plans without touching anything, then does exactly what it planned.

Owns the seam between the gate and the hands. It does not know which tools there are, who may use them,
or how a call reaches them.

Taking back what calls did to files: what a person is shown, and then done exactly so.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from handrail.store.actor import Actor
from handrail.store.values import (
    Assurance,
    Caller,
    Claim,
    Comment,
    FileChange,
    Json,
    Preview,
    ProcessSeen,
    Result,
    SignalSent,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a call would do: declared before anything is done, and bound by the approval's digest."""

    claims: tuple[Claim, ...]
    preview: Preview | None = None
    bound: Json
    """Everything beside tool and input that must be the same when it runs: cwd, program, pre-image."""
    files: tuple[FileChange, ...] = ()
    """What it would put in place of what; what was there is kept, so that it can be undone."""
    asks: str = ""
    """Why a person must answer this themselves, as a sentence; then no rule has a say in it."""

    @property
    def acts(self) -> bool:
        """It would change something, so that its record must be safe before it starts."""
        return any(claim.action not in ("read", "recall") for claim in self.claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A file as it is and as it would be, whole; None is no file."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFacts:
    """The part of a receipt that a tool knows. None leaves a field of the receipt unchanged."""

    signals: tuple[SignalSent, ...] | None = None
    processes_stopped: tuple[ProcessSeen, ...] | None = None
    processes_left: tuple[ProcessSeen, ...] | None = None
    bytes_kept: int | None = None
    files_changed: tuple[str, ...] | None = None


class CallReport(Protocol):
    """A call as its tool sees it: read-only properties, and methods that report facts to the gate.

    Only the gate writes its `Call`, which implements this.
    """

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def input(self) -> Json: ...
    @property
    def caller(self) -> Caller: ...
    @property
    def plan(self) -> "Plan | None":
        """None until the tool runs."""
        ...

    @property
    def terminal(self) -> str | None:
        """As reported by `use_terminal`."""
        ...

    @property
    def handed_back(self) -> bool: ...
    @property
    def ended_by(self) -> Actor | None:
        """None while the call has no outcome."""
        ...

    def use_terminal(self, id: str) -> None:
        """The work happens in this terminal."""
        ...

    def add_receipt(self, facts: ReceiptFacts) -> None:
        """Record what the work, or its end, did. A later report of the same field replaces an earlier one."""
        ...

    def keep_unwinding(self) -> None:
        """The work goes on after the result: the call is not reported as stopped, and the gate calls `Tool.unwind`."""
        ...

    def hand_back(self) -> int:
        """End the client's request now, while the call goes on; only the first time has an effect."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """What an unfinished call already has to give."""

    result: Result
    message: str
    """What the client is told when a person completes the call."""
    runs_on: bool
    """Whether the work goes on after Complete."""
    receipt: ReceiptFacts = ReceiptFacts()
    """For the receipt, if the call is settled with this."""


class Refusal(Exception):
    """A tool will not, or could not, do what was asked; the sentence is for the model that asked."""

    def __init__(self, sentence: str, result: Result | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.result = result
        """What there is all the same, such as the output of a command that ran out of time."""


InputT = TypeVar("InputT", bound=BaseModel)
PlanT = TypeVar("PlanT", bound=Plan)


class Tool(ABC, Generic[InputT, PlanT]):
    """One thing agents can ask for."""

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    input: type[InputT]
    output: ClassVar[type[BaseModel]]
    """The tool's own fields of a result, each optional: a call can end before any of them is known."""
    reads_only: ClassVar[bool] = False
    destructive: ClassVar[bool] = False
    accepts: ClassVar[bool] = False
    """Complete on a waiting call accepts what its preview shows."""
    repeats: ClassVar[bool] = False
    """Asking the same again while it is open is meant, not a client that gave up waiting."""
    listed: ClassVar[bool] = True
    """Agents are told of it; the others are for Handrail's own doors."""
    assurance: ClassVar[Assurance] = "bound"
    """Who does the work: advisory is a question about what an agent then does by itself."""
    edits: ClassVar[bool] = True
    """A person may change its input before they allow it."""

    @abstractmethod
    def display(self, input: InputT) -> str:
        """A short line for lists: verb and object, or the command itself."""

    @abstractmethod
    async def plan(self, input: InputT, caller: Caller) -> PlanT:
        """Say what would be touched. No side effect at all. Raises Refusal."""

    @abstractmethod
    async def run(self, plan: PlanT, call: CallReport) -> Result:
        """Do what was planned, within the call's scope. Raises Refusal."""

    def proposal(self, plan: PlanT) -> Proposal | None:
        """The file this would write, for a person to review; None when it writes none."""
        return None

    def review(self, plan: PlanT, content: str, comments: tuple[Comment, ...]) -> PlanT:
        """The same plan with the content a person made of its proposal. Raises Refusal."""
        raise Refusal(f"{self.name} proposes no file, so there is nothing to review.")

    def tells(self, plan: PlanT) -> str:
        """What the agent will be told about the review that a plan holds; empty where there was none."""
        return ""

    def changed_since(self, plan: PlanT) -> tuple[str, str] | None:
        """How what the plan would replace differs by now: a sentence, and a diff for a person's eyes.

        None while it does not. Looks at the disk, so it takes a while.
        """
        return None

    async def unwind(self, call: CallReport) -> None:
        """End what the work left behind, after its result; asked for by `call.keep_unwinding`."""

    def patience(self, input: InputT) -> float | None:
        """How long the client said it would wait, in seconds; None when it did not say."""
        return None

    def salvage(self, call: CallReport) -> Salvage | None:
        """What a running call has to give right now; None when there is nothing partial. Reports nothing itself."""
        return None


Toolbox = Mapping[str, Tool[Any, Any]]

Does = Literal["restore", "remove", "recreate", "nothing", "refuse"]
Of = Literal["call", "operation", "thread", "undo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoFile:
    """One file of an undo."""

    path: str
    does: Does
    says: str
    diff: str = ""
    """What undoing does to it; of a refused one, what is in the way."""
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """What an undo would do, or did."""

    what: str
    """The id that is undone."""
    of: Of
    title: str
    digest: str
    """Of what would be done; an undo that would do something else is refused."""
    files: tuple[UndoFile, ...]
    not_covered: tuple[str, ...]
    """What cannot be undone, in words."""
    undo: str | None = None
    """The id of the undo once it is done; it can be undone itself."""


class UnknownUndo(Exception):
    """There is nothing of this name to undo."""

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(
            f"There is no call, operation, thread or undo {id}. `handrail calls` lists the calls there are."
        )


class Undoes(Protocol):
    """Whoever can take back what calls did to files."""

    async def preview(self, id: str) -> UndoPlan:
        """What undoing this call, operation, thread or earlier undo would do. Raises `UnknownUndo`."""
        ...

    async def undo(self, id: str, digest: str, by: Actor) -> UndoPlan:
        """Do what was shown. Raises `UnknownUndo`, `Conflict` when it would do something else, `Unwritable`."""
        ...
