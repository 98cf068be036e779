"""The interfaces between the gate and the tools: `Tool`, `Plan`, `CallReport`; and the undo interface.

A tool plans without side effects, then runs exactly that plan. Likewise an undo does exactly what its preview shows.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from handrail.gate.feedback import describe_edit
from handrail.lazy_dataclass import dataclass
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
    ResultPreview,
    SignalSent,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The effects of a call, declared before it runs and bound by the approval's digest."""

    claims: tuple[Claim, ...]
    preview: Preview | None = None
    bound: Json
    """All values besides tool and input that must be unchanged when it runs: cwd, program, pre-image."""
    files: tuple[FileChange, ...] = ()
    """File changes it would make. The old contents are kept for undo."""
    old_contents: tuple[bytes, ...] = ()
    """The old contents. The journal keeps the small ones with the start of the call; `run` keeps the others."""
    asks: str = ""
    """Why a person must approve this, as a sentence; if set, rules are ignored."""
    passes: str = ""
    """Why this is only recorded and not judged, as a sentence; if set, rules are ignored."""
    refuses: str = ""
    """Why this cannot be done, as a sentence. A rule that denies it is told first; it is never asked about or run."""
    server: str | None = None
    """The MCP server that would do the work, for rules about a server."""
    reviews_result: bool = False
    """A person sees what another server answers before the client gets it."""

    @property
    def acts(self) -> bool:
        """Whether it changes anything; if so, its start must be durable before it runs."""
        return any(claim.action not in ("read", "recall", "plan") for claim in self.claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The full content of a file before and after the call; None means no file."""

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


@dataclass(frozen=True, slots=True)
class Image:
    """An image for the client's model."""

    mime: str
    content: bytes


class CallReport(Protocol):
    """A call as its tool sees it: read-only properties, and methods that report facts to the gate.

    Implemented by `Call`. Tools do not change a call in any other way.
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
        """The terminal id reported by `use_terminal`."""
        ...

    @property
    def patience(self) -> float:
        """Seconds from its opening until its client gets a reply."""
        ...

    @property
    def handed_back(self) -> bool: ...
    @property
    def ended_by(self) -> Actor | None:
        """None while the call has no outcome."""
        ...

    def use_terminal(self, id: str) -> None:
        """Report the terminal in which the work runs."""
        ...

    def add_receipt(self, facts: ReceiptFacts) -> None:
        """Report facts for the receipt. A later report of the same field replaces an earlier one."""
        ...

    def show_image(self, image: Image) -> None:
        """Send an image with the result. It is not recorded: a later reader of the call gets the text only."""
        ...

    def relay(self, answer: Json) -> None:
        """Send this answer of another server to the client, as it is. It is not recorded."""
        ...

    def keep_unwinding(self) -> None:
        """Report that work goes on after the result: the call is not yet stopped, and the gate calls `Tool.unwind`."""
        ...

    def hand_back(self) -> int:
        """End the client's request now, while the call goes on. Idempotent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """Partial result of an unfinished call."""

    result: Result
    message: str
    """Message for the client when a person completes the call."""
    runs_on: bool
    """Whether the work goes on after Complete."""
    receipt: ReceiptFacts = ReceiptFacts()
    """Facts for the receipt, if the call is settled with this."""
    ended: bool = False
    """The work has ended by itself: the result is whole, and there is nothing to cancel."""


class Refusal(Exception):
    """A tool cannot or will not do the call; the sentence is for the model."""

    def __init__(self, sentence: str, result: Result | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.result = result
        """Partial result, such as the output of a command that timed out."""


class UnknownEnd(Exception):
    """Work had started and its end was not observed: the call is `interrupted`. The sentence is for the model."""

    def __init__(self, sentence: str, result: Result | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.result = result
        """Partial result, such as the output up to then."""


NO_EDITS = "This agent cannot take edited input: it does this itself. Allow it as it is, or deny it and say what you want."

InputT = TypeVar("InputT", bound=BaseModel)
PlanT = TypeVar("PlanT", bound=Plan)


class Tool(ABC, Generic[InputT, PlanT]):
    """A tool that agents can call."""

    name: str
    title: str
    description: str
    input: type[InputT]
    output: ClassVar[type[BaseModel]]
    """The tool's own fields of a result, each optional: a call can end before any of them is known."""
    reads_only: ClassVar[bool] = False
    destructive: ClassVar[bool] = False
    completes_by_accepting: ClassVar[bool] = False
    """Complete on a waiting call accepts what its preview shows."""
    repeats: ClassVar[bool] = False
    """An equal call while one is open is a new call, not a retry by a client that timed out."""
    answer_inputs: ClassVar[frozenset[str]] = frozenset({"response_format"})
    """Inputs that change only how and when the client is answered. A repeated call may differ in them."""
    takes_remarks: ClassVar[bool] = True
    """Inputs in which models explain a call are ignored, if the tool has none of that name."""
    listed: ClassVar[bool] = True
    """Listed to agents; the others are only used by Handrail itself."""
    assurance: ClassVar[Assurance] = "bound"
    """Who does the work: `bound` is Handrail, `forwarded` an MCP server, `advisory` is the agent, after it asked."""
    edits: ClassVar[bool] = True
    """A person may edit its input before allowing it."""
    shows_path: ClassVar[bool] = False
    """`display` shows the field `path`."""

    def refuse_edit(self, asked: Json, edited: Json | None = None) -> str:
        """Why a person cannot edit the input `asked`, as a sentence; empty if they can. With `edited`: not like this."""
        return "" if self.edits else NO_EDITS

    def is_listed(self, caller: Caller) -> bool:
        """Whether it is listed to this caller. A tool may depend on something that is there only at times."""
        return self.listed

    @abstractmethod
    def display(self, input: InputT) -> str:
        """A short line for lists: verb and object, or the command itself."""

    def title_for(self, input: InputT, caller: Caller) -> str:
        """The title of a call. A path in the workspace is relative to it, so that a narrow list shows the file's name."""
        path = getattr(input, "path", "") if self.shows_path and caller.workspace else ""
        inner = path.removeprefix(f"{caller.workspace}/")
        return self.display(input.model_copy(update={"path": inner}) if inner else input)

    @abstractmethod
    async def plan(self, input: InputT, caller: Caller) -> PlanT:
        """Plan the call, without any side effect. Raises Refusal."""

    @abstractmethod
    async def run(self, plan: PlanT, call: CallReport) -> Result:
        """Execute the plan, within the call's cancel scope. Raises Refusal or UnknownEnd."""

    async def wait_ready(self, input: InputT, answered_ms: int) -> None:
        """Wait until work that a person allowed can begin; `answered_ms` is how long ago that was. Raises UnknownEnd.

        Only work that the agent does itself, and about which it will ask again, has to wait.
        """

    def keep_answer(self, input: InputT) -> bool:
        """Whether an answer that an earlier daemon got, and did not use, is kept for the agent that will ask again."""
        return False

    def outlives_daemon(self, call: CallReport) -> bool:
        """Whether the work of a running call goes on when the daemon is replaced."""
        return False

    async def find_work(self, input: InputT, call: CallReport) -> PlanT | None:
        """The plan of work that an earlier daemon started and whose end can still be observed; else None.

        The plan has no claims and binds nothing: it is only for `rejoin` and `salvage`. The gate adds the claims and files
        of the start.
        """
        return None

    async def rejoin(self, plan: PlanT, call: CallReport) -> Result:
        """Attend to the work that `find_work` found, as `run` does after its start. Raises Refusal or UnknownEnd."""
        raise UnknownEnd(f"{self.name} cannot be followed after a restart.")

    def proposal(self, plan: PlanT) -> Proposal | None:
        """The file this would write, for a person to review; None if it writes no file."""
        return None

    def review(self, plan: PlanT, content: str, comments: tuple[Comment, ...]) -> PlanT:
        """The same plan with a person's edit of the proposed content. Slow for large files. Raises Refusal."""
        raise Refusal(f"{self.name} proposes no file, so there is nothing to review.")

    def describe_edit(self, asked: Json, edited: Json) -> str:
        """The message for the agent about a person's change of its input; empty without one."""
        return describe_edit(asked, edited)

    def describe_review(self, plan: PlanT) -> str:
        """The message for the agent about the review in a plan; empty without a review."""
        return ""

    def changed_since(self, plan: PlanT) -> tuple[str, str] | None:
        """How the file that the plan replaces has changed since: a sentence, and a diff for a person.

        None if it is unchanged. Reads the disk; call it in a thread.
        """
        return None

    async def unwind(self, call: CallReport) -> None:
        """Clean up after the result; called if the tool called `call.keep_unwinding`."""

    def patience(self, input: InputT) -> float | None:
        """Seconds that the client is willing to wait, from the input; None if not given."""
        return None

    def preview_answer(self, answer: Json) -> ResultPreview:
        """What a person sees of another server's answer, for a plan that has it reviewed."""
        raise Refusal(f"{self.name} gets no answer of another server.")

    def salvage(self, call: CallReport) -> Salvage | None:
        """The partial result of a running call; None if there is nothing. No side effects."""
        return None


Toolbox = Mapping[str, Tool[Any, Any]]

UndoAction = Literal["restore", "remove", "recreate", "nothing", "refuse"]
UndoSubject = Literal["call", "operation", "thread", "undo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoFile:
    """One file of an undo."""

    path: str
    does: UndoAction
    says: str
    diff: str = ""
    """Diff of the undo; for a refused file, of the conflicting change."""
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPlan:
    """The effects of an undo, before or after it ran."""

    what: str
    """Id of the call, operation, thread or undo to undo."""
    of: UndoSubject
    title: str
    digest: str
    """Identifies the effects; an undo with another digest is refused."""
    files: tuple[UndoFile, ...]
    not_covered: tuple[str, ...]
    """Descriptions of effects that cannot be undone."""
    undo: str | None = None
    """Id of the finished undo, which can itself be undone; None before."""


class UnknownUndo(Exception):
    """No call, operation, thread or undo has this id."""

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(
            f"There is no call, operation, thread or undo {id}. `handrail calls` lists the calls there are."
        )


class Undoer(Protocol):
    """Undoes file changes made by calls."""

    async def preview(self, id: str) -> UndoPlan:
        """Preview the undo of a call, operation, thread or earlier undo. Raises `UnknownUndo`."""
        ...

    async def undo(self, id: str, digest: str, by: Actor) -> UndoPlan:
        """Undo as previewed. Raises `UnknownUndo`, `Unwritable`, and `Conflict` if the digest no longer matches."""
        ...
