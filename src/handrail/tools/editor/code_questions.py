"""get_diagnostics, get_symbols and find_references: what a person's editor knows about the code of a workspace.

The editor answers (`server.editor_windows`); answers about files that the caller may not read is left out.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Json, PathPreview, Result
from handrail.tools.results import Format, Input, answer, count_text, printable_line
from handrail.tools.workspace import Place, Workspace, describe_missing

SHOWN_MAX = 200
"""Diagnostics, symbols or references in one answer: a model has to read them."""
TEXT_MAX = 1000
"""Characters of one message, name or line."""
NOT_UNDERSTOOD = (
    "The editor's answer was not understood. Its extension may be of another version: `handrail connect vscode` installs the "
    "one that belongs to this Handrail."
)


class Editors(Protocol):
    """The editors that people have open."""

    def serves(self, folder: str | None) -> bool: ...
    async def ask(self, path: str, what: str, input: Json) -> JsonValue:
        """The answer of the editor that has this path open. Raises Refusal."""
        ...


AnswerT = TypeVar("AnswerT")


def read_answer(adapter: TypeAdapter[AnswerT], value: JsonValue) -> AnswerT:
    try:
        return adapter.validate_python(value)
    except ValidationError:
        raise Refusal(NOT_UNDERSTOOD) from None


InputT = TypeVar("InputT", bound=Input)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan(Plan, Generic[InputT]):
    """A resolved file or folder, and what to ask about it."""

    place: Place
    workspace: Workspace
    input: InputT


class _QuestionTool(Tool[InputT, QuestionPlan[InputT]]):
    """Base of the tools that ask an editor and change nothing."""

    reads_only = True
    without_editor = False
    """Listed also without an editor: then it says how to get one."""

    def __init__(self, own: Sequence[Path], editors: Editors) -> None:
        self._own = tuple(own)
        self._editors = editors

    def is_listed(self, caller: Caller) -> bool:
        return self.without_editor or self._editors.serves(caller.workspace)

    def _plan(self, path: str, input: InputT, caller: Caller) -> QuestionPlan[InputT]:
        workspace = Workspace.of(caller, self._own)
        place = workspace.place(path)
        return QuestionPlan(
            claims=(place.claim("read"),),
            preview=PathPreview(path=place.path),
            bound=place.bound,
            place=place,
            workspace=workspace,
            input=input,
        )

    async def _ask(self, plan: QuestionPlan[InputT], what: str, input: Json) -> JsonValue:
        if plan.place.found is None:
            raise Refusal(describe_missing(plan.place))
        return await self._editors.ask(plan.place.path, what, input)


def build_filter(plan: QuestionPlan[InputT], *, below: bool) -> Callable[[str], Place | None]:
    """Resolves a path of the editor's answer; None for a file that this call may not tell about.

    It may tell about what it claimed, and about what any caller in the workspace may read; with `below`, about nothing
    outside of the claimed folder.
    """
    claimed = plan.place

    @cache
    def resolve(path: str) -> Place | None:
        try:
            place = plan.workspace.place(path)
        except Refusal:
            return None
        is_claimed = f"{place.path}/".startswith(claimed.path.rstrip("/") + "/")
        if is_claimed and (claimed.protected or not place.protected):
            return place
        return place if place.is_common and not below else None

    return resolve


def _listed(lines: Sequence[str], total: int, hidden: int, noun: str, none: str, advice: str) -> str:
    """The lines, and truthful notes on what is left out: above the limit, or because the caller may not read it."""
    notes: list[str] = []
    if total > len(lines):
        notes.append(f"[{len(lines):,} of {count_text(total, noun)}; {total - len(lines):,} more. {advice}]")
    if hidden:
        notes.append(
            f"[{count_text(hidden, noun)} in files outside of the workspace or in protected places left out.]"
        )
    return "\n".join([*lines, *notes]) if lines else "\n".join([none, *notes])


Severity = Literal["error", "warning", "information", "hint"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "information", "hint")


class GetDiagnosticsInput(Input):
    path: Annotated[
        str,
        Field(
            description="A file, or a directory; the whole workspace unless given. A file is checked anew."
        ),
    ] = "."
    severity: Annotated[
        Severity, Field(description="The least severe to give; errors and warnings unless given.")
    ] = "warning"
    response_format: Format = "text"


class Diagnostic(BaseModel, defer_build=True):
    path: str
    line: int = Field(description="Counted from 1.")
    column: int = Field(description="Counted from 1.")
    severity: Severity
    message: str
    source: str = Field("", description="The program that found it, such as `ts` or `eslint`.")
    code: str = Field("", description="Its code, such as `2322`.")


class DiagnosticsOutput(BaseModel, defer_build=True):
    path: str | None = Field(None, description="The file or directory.")
    diagnostics: list[Diagnostic] | None = Field(None, description="The most severe first.")
    errors: int | None = Field(None, description="How many errors there are in all.")
    warnings: int | None = Field(None, description="How many warnings there are in all.")
    total: int | None = Field(None, description="How many there are, when more than are given.")
    truncated: bool | None = Field(None, description="There are more than are given.")
    unfinished: bool | None = Field(None, description="The editor may still be checking the file.")


@dataclass(frozen=True, slots=True)
class _Diagnostics:
    items: list[Diagnostic]
    total: int
    unfinished: bool = False


_DIAGNOSTICS = TypeAdapter(_Diagnostics)


class GetDiagnostics(_QuestionTool[GetDiagnosticsInput]):
    """The problems that the editor's language servers and linters report."""

    name = "get_diagnostics"
    title = "Get diagnostics"
    description = (
        "Errors and warnings that the person's editor shows for a file, a directory or the workspace: of compilers, type "
        "checkers and linters. Give the path of a file after you have changed it: it is checked as it is on disk. For a "
        "directory, editors know only the files that were opened, or what their language servers check by themselves. Needs "
        "an editor with Handrail's extension; without one the answer says how to get it."
    )
    input = GetDiagnosticsInput
    output = DiagnosticsOutput
    without_editor = True

    def display(self, input: GetDiagnosticsInput) -> str:
        return f"Get diagnostics of {printable_line(input.path)}"

    async def plan(self, input: GetDiagnosticsInput, caller: Caller) -> QuestionPlan[GetDiagnosticsInput]:
        return self._plan(input.path, input, caller)

    async def run(self, plan: QuestionPlan[GetDiagnosticsInput], call: CallReport) -> Result:
        params, shown = plan.input, plan.place.shown
        asked: Json = {"folder": not plan.place.is_file, "severity": SEVERITIES.index(params.severity)}
        found = read_answer(_DIAGNOSTICS, await self._ask(plan, "diagnostics", asked))
        resolve = build_filter(plan, below=True)
        items = [
            item.model_copy(update={"path": place.shown, "message": item.message[:TEXT_MAX]})
            for item in found.items
            if (place := resolve(item.path)) is not None
        ]
        hidden = len(found.items) - len(items)
        items.sort(key=lambda item: (SEVERITIES.index(item.severity), item.path, item.line, item.column))
        total = found.total - hidden
        given = items[:SHOWN_MAX]
        none = f"The editor reports no {_nouns(params.severity)} in {shown}."
        text = _listed(
            [_diagnostic_line(item) for item in given],
            total,
            hidden,
            "diagnostic",
            none,
            "Narrow it with path or severity.",
        )
        if found.unfinished:
            text += "\n[The editor may still be checking this file; ask again for certainty.]"
        data: Json = {
            "path": shown,
            "diagnostics": [item.model_dump(mode="json") for item in given],
            "errors": sum(item.severity == "error" for item in items),
            "warnings": sum(item.severity == "warning" for item in items),
            "total": total,
            "truncated": total > len(given),
            "unfinished": found.unfinished,
        }
        return answer(text, data, params.response_format)


def _nouns(severity: Severity) -> str:
    return {"error": "errors", "warning": "errors or warnings"}.get(severity, "problems")


def _diagnostic_line(item: Diagnostic) -> str:
    label = " ".join(filter(None, (item.source, item.code)))
    return f"{item.path}:{item.line}:{item.column}: {item.severity}: {item.message}" + (
        f" [{label}]" if label else ""
    )


class GetSymbolsInput(Input):
    path: Annotated[
        str, Field(description="A file, for its outline; or a directory to search in, with query.")
    ] = "."
    query: Annotated[
        str, Field(max_length=200, description="A name, or a part of one, to find in the whole workspace.")
    ] = ""
    response_format: Format = "text"


class Symbol(BaseModel, defer_build=True):
    path: str
    line: int = Field(description="The first line, counted from 1.")
    end_line: int = Field(description="The last line.")
    name: str
    kind: str = Field(description="Such as `class`, `function` or `variable`.")
    container: str = Field("", description="What it is defined in.")
    depth: int = 0


class SymbolsOutput(BaseModel, defer_build=True):
    path: str | None = Field(None, description="The file or directory.")
    symbols: list[Symbol] | None = None
    total: int | None = Field(None, description="How many there are, when more than are given.")
    truncated: bool | None = Field(None, description="There are more than are given.")


@dataclass(frozen=True, slots=True)
class _Symbols:
    items: list[Symbol]
    total: int


_SYMBOLS = TypeAdapter(_Symbols)


class GetSymbols(_QuestionTool[GetSymbolsInput]):
    """The outline of a file, or the definitions with a name."""

    name = "get_symbols"
    title = "Get symbols"
    description = (
        "The outline of a file (classes, functions, variables, with their lines), or with query the places in the workspace "
        f"where something with that name is defined. Answered by the language server of the person's editor. At most "
        f"{SHOWN_MAX} are given."
    )
    input = GetSymbolsInput
    output = SymbolsOutput

    def display(self, input: GetSymbolsInput) -> str:
        about = printable_line(input.query, 60) if input.query else printable_line(input.path)
        return f"Get symbols {'named' if input.query else 'of'} {about}"

    async def plan(self, input: GetSymbolsInput, caller: Caller) -> QuestionPlan[GetSymbolsInput]:
        plan = self._plan(input.path, input, caller)
        if not input.query and plan.place.is_common and not plan.place.is_file and plan.place.found:
            raise Refusal(f"{plan.place.shown} is no file. Give the path of a file, or a query.")
        return plan

    async def run(self, plan: QuestionPlan[GetSymbolsInput], call: CallReport) -> Result:
        params = plan.input
        what = "find symbols" if params.query else "outline"
        found = read_answer(_SYMBOLS, await self._ask(plan, what, {"query": params.query}))
        resolve = build_filter(plan, below=True)
        items = [
            item.model_copy(update={"path": place.shown, "name": item.name[:TEXT_MAX]})
            for item in found.items
            if (place := resolve(item.path)) is not None
        ]
        hidden, given = len(found.items) - len(items), items[:SHOWN_MAX]
        total = found.total - hidden
        none = (
            f"The editor knows nothing in {plan.place.shown} that is named like {params.query}."
            if params.query
            else f"The editor knows no symbols in {plan.place.shown}: it is empty, or no language server is there for it."
        )
        lines = [_symbol_line(item, named=bool(params.query)) for item in given]
        text = _listed(lines, total, hidden, "symbol", none, "Narrow it with path or query.")
        data: Json = {
            "path": plan.place.shown,
            "symbols": [item.model_dump(mode="json") for item in given],
            "total": total,
            "truncated": total > len(given),
        }
        return answer(text, data, params.response_format)


def _symbol_line(item: Symbol, *, named: bool) -> str:
    if named:
        where = f" in {item.container}" if item.container else ""
        return f"{item.path}:{item.line}: {item.kind} {item.name}{where}"
    lines = f"{item.line}" if item.end_line <= item.line else f"{item.line}-{item.end_line}"
    return f"{'  ' * min(item.depth, 20)}{item.kind} {item.name}  [{lines}]"


class SymbolInput(Input):
    """The input of a tool about one symbol. Columns are counted by the editor: models count them badly."""

    path: Annotated[str, Field(description="A file in which the symbol occurs.")]
    symbol: Annotated[
        str, Field(min_length=1, max_length=200, description="Its name, as it stands in the file.")
    ]
    line: Annotated[
        int | None,
        Field(
            ge=1, description="The line where it stands, counted from 1; where it occurs first unless given."
        ),
    ] = None

    @property
    def question(self) -> Json:
        return {"symbol": self.symbol, "line": self.line}


class FindReferencesInput(SymbolInput):
    response_format: Format = "text"


class Reference(BaseModel, defer_build=True):
    path: str
    line: int = Field(description="Counted from 1.")
    column: int = Field(description="Counted from 1.")
    text: str = Field("", description="The line.")


class ReferencesOutput(BaseModel, defer_build=True):
    symbol: str | None = None
    references: list[Reference] | None = None
    total: int | None = Field(None, description="How many there are, when more than are given.")
    truncated: bool | None = Field(None, description="There are more than are given.")


@dataclass(frozen=True, slots=True)
class _References:
    items: list[Reference]
    total: int


_REFERENCES = TypeAdapter(_References)


class FindReferences(_QuestionTool[FindReferencesInput]):
    """The places where a symbol is used."""

    name = "find_references"
    title = "Find references"
    description = (
        "Every place where a symbol is used or defined, by the language server of the person's editor: unlike a text search "
        f"it tells two things of one name apart. At most {SHOWN_MAX} are given."
    )
    input = FindReferencesInput
    output = ReferencesOutput

    def display(self, input: FindReferencesInput) -> str:
        return f"Find references to {printable_line(input.symbol, 60)}"

    async def plan(self, input: FindReferencesInput, caller: Caller) -> QuestionPlan[FindReferencesInput]:
        return self._plan(input.path, input, caller)

    async def run(self, plan: QuestionPlan[FindReferencesInput], call: CallReport) -> Result:
        params = plan.input
        found = read_answer(_REFERENCES, await self._ask(plan, "references", params.question))
        resolve = build_filter(plan, below=False)
        items = [
            item.model_copy(update={"path": place.shown, "text": item.text[:TEXT_MAX]})
            for item in found.items
            if (place := resolve(item.path)) is not None
        ]
        items.sort(key=lambda item: (item.path, item.line, item.column))
        hidden, given = len(found.items) - len(items), items[:SHOWN_MAX]
        total = found.total - hidden
        none = f"The editor knows no reference to {params.symbol}."
        lines = [f"{item.path}:{item.line}:{item.column}: {item.text.strip()}" for item in given]
        text = _listed(lines, total, hidden, "reference", none, "Search with search_content for the rest.")
        data: Json = {
            "symbol": params.symbol,
            "references": [item.model_dump(mode="json") for item in given],
            "total": total,
            "truncated": total > len(given),
        }
        return answer(text, data, params.response_format)
