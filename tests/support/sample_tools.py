"""Small tools for tests of the gate. Each does one thing that a real tool may do.

A test controls them with events: a tool waits until the test lets it continue.
"""

import hashlib
from dataclasses import replace

import anyio
from pydantic import BaseModel, ConfigDict

from handrail.gate.tool import CallReport, Plan, Proposal, Refusal, Salvage, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Action, Caller, Claim, Comment, DiffPreview, FileChange, Json, Result

STUBBORN_SECONDS = 10.0
"""A stubborn tool gives up after this time, so that a broken test ends."""


class ToyInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    word: str = "hello"
    count: int = 1
    patience: float | None = None


class ToyOutput(BaseModel):
    word: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyPlan(Plan):
    word: str


def word_result(word: str) -> Result:
    return Result(text=word, data={"word": word})


class Echo(Tool[ToyInput, ToyPlan]):
    """Returns the word. The test chooses its claim."""

    name = "echo"
    title = "Echo"
    description = "Say a word."
    input = ToyInput
    output = ToyOutput
    answer_inputs = frozenset({"patience"})

    def __init__(self, action: Action = "read") -> None:
        self.action: Action = action
        self.bound: Json = {"version": 1}
        self.runs: list[str] = []
        """The words it was run with, in order."""

    def display(self, input: ToyInput) -> str:
        return f"{self.name} {input.word}"

    def patience(self, input: ToyInput) -> float | None:
        return input.patience

    async def plan(self, input: ToyInput, caller: Caller) -> ToyPlan:
        claim = Claim(action=self.action, resource=f"/w/{input.word}", inside=True)
        preview = DiffPreview(path=claim.resource, diff=f"+{input.word}", added=1, removed=0)
        return ToyPlan(claims=(claim,), preview=preview, bound=dict(self.bound), word=input.word)

    async def run(self, plan: ToyPlan, call: CallReport) -> Result:
        self.runs.append(plan.word)
        return await self.work(plan, call)

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        return word_result(plan.word)


class Write(Echo):
    """Appends to a file that is a list; Complete accepts what its preview shows."""

    name = "write"
    completes_by_accepting = True

    def __init__(self) -> None:
        super().__init__("write")


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetPlan(ToyPlan):
    before: str
    comments: tuple[Comment, ...] = ()
    reviewed: bool = False


class Sheet(Echo):
    """Replaces the content of its sheet with a word. A person may edit the word."""

    name = "sheet"
    completes_by_accepting = True

    def __init__(self) -> None:
        super().__init__("write")
        self.holds = "old"

    async def plan(self, input: ToyInput, caller: Caller) -> SheetPlan:
        if input.word == self.holds:
            raise Refusal("It holds that already.")
        base = await super().plan(input, caller)
        bound: Json = {"before": self.holds, "after": input.word}
        change = FileChange(path="/w/sheet", before=sha(self.holds), after=sha(input.word))
        return SheetPlan(claims=base.claims, bound=bound, files=(change,), word=input.word, before=self.holds)

    def proposal(self, plan: ToyPlan) -> Proposal | None:
        assert isinstance(plan, SheetPlan)
        return Proposal(path="/w/sheet", before=plan.before, after=plan.word)

    def review(self, plan: ToyPlan, content: str, comments: tuple[Comment, ...]) -> SheetPlan:
        assert isinstance(plan, SheetPlan)
        if "\0" in content:
            raise Refusal("That is no text.")
        change = replace(plan.files[0], after=sha(content))
        bound: Json = {**plan.bound, "after": content}
        return replace(plan, bound=bound, files=(change,), word=content, comments=comments, reviewed=True)

    def describe_review(self, plan: ToyPlan) -> str:
        return f"A person made {plan.word} of it." if isinstance(plan, SheetPlan) and plan.reviewed else ""

    def changed_since(self, plan: ToyPlan) -> tuple[str, str] | None:
        assert isinstance(plan, SheetPlan)
        if plan.before == self.holds:
            return None
        return "The sheet changed on disk.", f"-{plan.before}\n+{self.holds}"

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        assert isinstance(plan, SheetPlan)
        self.holds = plan.word
        told = [self.describe_review(plan), *(f"{each.line}: {each.text}" for each in plan.comments)]
        return Result(text="\n".join([plan.word, *filter(None, told)]), data={"word": plan.word})


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Patient(Echo):
    """Works until the test lets it end, and counts its clean-up."""

    name = "patient"

    def __init__(self, action: Action = "read") -> None:
        super().__init__(action)
        self.started = anyio.Event()
        self.go = anyio.Event()
        self.tidied = 0

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        self.started.set()
        try:
            await self.go.wait()
        finally:
            self.tidied += 1
        return word_result(plan.word)


class Stubborn(Patient):
    """Ignores its cancel, and ends only when the test lets it."""

    name = "stubborn"

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        with anyio.move_on_after(STUBBORN_SECONDS, shield=True):
            return await super().work(plan, call)
        raise TimeoutError("nobody let the stubborn tool go")


class Printer(Patient):
    """Has partial output while it works."""

    name = "printer"

    def __init__(self, action: Action = "run", *, runs_on: bool = True) -> None:
        super().__init__(action)
        self.runs_on = runs_on
        self.printed = "so far"

    def salvage(self, call: CallReport) -> Salvage | None:
        return Salvage(result=word_result(self.printed), message="Force-completed.", runs_on=self.runs_on)


class StubbornPrinter(Printer):
    """Has partial output, and ends only when the test lets it."""

    name = "stubborn_printer"

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        with anyio.move_on_after(STUBBORN_SECONDS, shield=True):
            return await super().work(plan, call)
        raise TimeoutError("nobody let the stubborn printer go")


class Background(Patient):
    """Hands its call back as soon as it has started."""

    name = "background"

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        call.hand_back()
        return await super().work(plan, call)


class Untidy(Patient):
    """Returns its result immediately, but unwinds slowly."""

    name = "untidy"

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        call.keep_unwinding()
        return word_result(plan.word)

    async def unwind(self, call: CallReport) -> None:
        self.started.set()
        await self.go.wait()
        self.tidied += 1


class Planner(Echo):
    """Takes its time to plan."""

    name = "planner"

    def __init__(self, action: Action = "read") -> None:
        super().__init__(action)
        self.planning = anyio.Event()
        self.planned = anyio.Event()

    async def plan(self, input: ToyInput, caller: Caller) -> ToyPlan:
        self.planning.set()
        await self.planned.wait()
        return await super().plan(input, caller)


class Broken(Echo):
    """Raises an unexpected exception."""

    name = "broken"

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        raise ZeroDivisionError("secret in the traceback")


class Refusing(Echo):
    """Refuses, with a partial result."""

    name = "refusing"

    async def work(self, plan: ToyPlan, call: CallReport) -> Result:
        raise Refusal("It ran out of time.", word_result("half"))
