"""search_content: search the text of files with ripgrep.

Builds ripgrep's arguments, splits its output into records, and collects matches up to a limit. Which files
may be shown is decided in search_root.py.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Json, Result
from handrail.terminal.ripgrep import PATTERN_MAX, NoRipgrep, Search, SearchEnd, pattern_error, run_search
from handrail.terminal.safe_regex import DIALECT, BadPattern, check_characters
from handrail.terminal.thread_pool import FILES
from handrail.tools.files.line_window import WINDOW_MAX, is_binary
from handrail.tools.results import Format, Input, answer, count_text, printable_line
from handrail.tools.search.gitignore import is_in_git
from handrail.tools.search.search_root import TreePlan, open_tree, plan_tree

LINE_MAX = 500
"""Characters shown of one line; read_file shows more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a finding."""

    path: str
    line: int
    text: str
    match: bool


@dataclass(slots=True)
class SearchMatches:
    """Collects matches while the search runs."""

    mode: Literal["content", "files", "count"]
    limit: int
    path: Callable[[bytes], str | None]
    """Map ripgrep's path to one below the folder; None when it must not be shown."""
    shown: Callable[[str], str]
    ended: SearchEnd = field(default_factory=SearchEnd)
    lines: list[Line] = field(default_factory=list[Line])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    total: int = 0
    full: bool = False
    _size: int = 0
    _begun: bytes = b""

    def take(self, record: bytes) -> bool:
        """Add a record; return False when the limit is reached."""
        match self.mode:
            case "content":
                self._take_content(record)
            case "files":
                self._take_file(record, 1)
            case "count":
                self._take_count(record)
        return not self.full

    def render(self, where: str, pattern: str) -> tuple[str, Json]:
        """Text and data for a model."""
        data: Json = {"path": where, "total": self.total, "truncated": self._is_cut()}
        data["files"] = list(self.counts)
        match self.mode:
            case "content":
                data["lines"] = [asdict(line) for line in self.lines]
                rows = self._rows()
            case "files":
                rows = list(self.counts)
            case "count":
                data["counts"] = dict(self.counts)
                rows = [f"{count:>6} {path}" for path, count in self.counts.items()]
        none = [] if self.counts else [f"Nothing in {where} matches {printable_line(pattern, 60)}."]
        return "\n".join([*rows, *none, *self._notes()]), data

    def _take_content(self, record: bytes) -> None:
        event = json.loads(record)
        if event["type"] not in ("match", "context"):
            return
        data = event["data"]
        path = self._path(_raw(data["path"]))
        if path is not None:
            texts = _raw(data["lines"]).decode(errors="replace").removesuffix("\n").split("\n")
            for number, text in enumerate(texts, data["line_number"]):
                self._add(path, number, text.removesuffix("\r"), match=event["type"] == "match")

    def _add(self, path: str, number: int, text: str, *, match: bool) -> None:
        self.full = self.full or self._size > WINDOW_MAX or (match and self.total == self.limit)
        if self.full:
            return
        text = text if len(text) <= LINE_MAX else text[:LINE_MAX] + "…"
        self._size += len(text) + 20
        self.total += match
        self.lines.append(Line(path=path, line=number, text=text, match=match))
        self.counts[path] = self.counts.get(path, 0) + match

    def _take_count(self, record: bytes) -> None:
        """Parse `path NUL count`; a path with a newline arrives in pieces."""
        path, end, count = (self._begun + record).rpartition(b"\0")
        self._begun = b"" if end else self._begun + record + b"\n"
        if end:
            self._take_file(path, int(count))

    def _take_file(self, raw: bytes, count: int) -> None:
        path = self._path(raw)
        if path is None:
            return
        if self.total == self.limit:
            self.full = True
            return
        self.total += 1
        self.counts[path] = count

    def _path(self, raw: bytes) -> str | None:
        path = self.path(raw)
        return None if path is None else self.shown(path)

    def _rows(self) -> list[str]:
        """Lines grouped under their file name: `12:` for a match, `13-` for context."""
        rows: list[str] = []
        last: Line | None = None
        for line in self.lines:
            if last is None or line.path != last.path:
                rows += [""] * (last is not None) + [line.path]
            elif line.line > last.line + 1 and not (last.match and line.match):
                rows.append("  --")
            rows.append(f"{line.line:>6}{':' if line.match else '-'} {line.text}")
            last = line
        return rows

    def _is_cut(self) -> bool:
        return self.full or self.ended.out_of_time or self.ended.too_long > 0

    def _notes(self) -> list[str]:
        notes: list[str] = []
        if self.full:
            noun = "matching line" if self.mode == "content" else "file"
            notes.append(
                f"[Stopped at {count_text(self.total, noun)}; there are more. Narrow the search, or raise max_results.]"
            )
        if self.ended.out_of_time:
            notes.append(
                f"[Stopped after {SECONDS:g} seconds; there may be more. Narrow it with path or file_pattern.]"
            )
        if self.ended.too_long:
            notes.append(f"[{count_text(self.ended.too_long, 'match')} in very long lines left out.]")
        return notes


def _raw(value: dict[str, Any]) -> bytes:
    """Decode a ripgrep value: text, or base64 when it is not UTF-8."""
    return base64.b64decode(value["bytes"]) if "bytes" in value else str(value["text"]).encode()


Mode = Literal["list", "content", "files", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search below a folder, or of standard input."""

    mode: Mode
    pattern: str = ""
    ignore_case: bool = False
    multiline: bool = False
    context: int = 0
    names: str | None = None
    """A glob for file names; a pre-filter that saves reading other files."""
    git: bool = False
    """The folder is in a git work tree, so .gitignore files in its parents apply."""
    stdin: bool = False


def arguments(query: Query) -> list[str]:
    """The ripgrep arguments for a query."""
    return [*_ALWAYS, *_walk_arguments(query), *_mode_arguments(query)]


def separator(query: Query) -> bytes:
    """The byte that ends an output record."""
    return b"\0" if query.mode in ("list", "files") else b"\n"


_ALWAYS = (
    "--no-messages",
    "--sort=path",
    "--hidden",
    "--glob=!.git",
)


def _walk_arguments(query: Query) -> Iterator[str]:
    yield from ("--no-ignore-global", "--no-ignore-dot", "--no-ignore-exclude")
    if not query.git:
        yield from ("--no-require-git", "--no-ignore-parent")
    if query.names is not None:
        yield from (f"--type-add=asked:{query.names}", "--type=asked")


def _mode_arguments(query: Query) -> Iterator[str]:
    match query.mode:
        case "list":
            yield from ("--files", "--null", "./")
            return
        case "content":
            yield from ("--json", f"--context={query.context}")
        case "files":
            yield from ("--files-with-matches", "--null")
        case "count":
            yield from ("--count", "--with-filename", "--null")
    if query.ignore_case:
        yield "--ignore-case"
    if query.multiline:
        yield from ("--multiline", "--multiline-dotall")
    yield from (f"--regexp={query.pattern}", "--", "-" if query.stdin else "./")


class SearchContentInput(Input):
    pattern: Annotated[
        str,
        Field(
            min_length=1,
            max_length=PATTERN_MAX,
            description=f"A regular expression ({DIALECT}); escape literal brackets, as in `f\\(x\\)`.",
        ),
    ]
    path: Annotated[
        str, Field(description="A directory or one file, relative to the workspace or absolute.")
    ] = "."
    file_pattern: Annotated[
        str | None,
        Field(min_length=1, description="Only files matching this glob, such as `*.ts` or `src/**/*.ts`."),
    ] = None
    context: Annotated[int, Field(ge=0, le=50, description="Lines to show before and after each match.")] = 0
    case_insensitive: Annotated[bool, Field(description="Do not tell capital letters from small ones.")] = (
        False
    )
    multiline: Annotated[
        bool, Field(description="Let a match span lines; then `.` matches a newline too.")
    ] = False
    max_results: Annotated[
        int, Field(ge=1, le=5000, description="At most so many matching lines or files.")
    ] = 200
    output_mode: Annotated[
        Literal["content", "files", "count"],
        Field(
            description="`content`: the lines; `files`: the paths alone; `count`: matching lines for each file."
        ),
    ] = "content"
    response_format: Format = "text"


class SearchContentOutput(BaseModel, defer_build=True):
    path: str | None = Field(None, description="Where was searched.")
    lines: list[Line] | None = Field(
        None, description="Matching lines and their context, in output_mode content."
    )
    files: list[str] | None = Field(None, description="Files with a match, in every output_mode.")
    counts: dict[str, int] | None = Field(None, description="Matching lines by file, in output_mode count.")
    total: int | None = Field(None, description="How many matching lines, or files, are given.")
    truncated: bool | None = Field(None, description="There may be more matches than are given.")


class SearchContent(Tool[SearchContentInput, TreePlan[SearchContentInput]]):
    """Search the text of files."""

    name = "search_content"
    title = "Search content"
    description = (
        "Search the text of files for a regular expression. What .gitignore hides is left out, and so are binary files "
        "and what lies in protected places, unless you name such a place as path."
    )
    input = SearchContentInput
    output = SearchContentOutput
    reads_only = True

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._own = tuple(own)

    def display(self, input: SearchContentInput) -> str:
        return f"Search for {printable_line(input.pattern, 60)}"

    async def plan(self, input: SearchContentInput, caller: Caller) -> TreePlan[SearchContentInput]:
        try:
            check_characters(input.pattern, PATTERN_MAX)
        except BadPattern as problem:
            raise Refusal(str(problem)) from None
        return plan_tree(input.path, input, caller, self._own)

    async def run(self, plan: TreePlan[SearchContentInput], call: CallReport) -> Result:
        findings = await (_in_file(plan) if plan.place.is_file else _in_folder(plan))
        if findings.ended.complaint:
            raise Refusal(str(pattern_error(findings.ended.complaint, plan.input.pattern)))
        text, data = findings.render(plan.place.shown, plan.input.pattern)
        return answer(text, data, plan.input.response_format)


async def _in_folder(plan: TreePlan[SearchContentInput]) -> SearchMatches:
    with open_tree(plan, plan.input.file_pattern) as tree:
        findings = SearchMatches(plan.input.output_mode, plan.input.max_results, tree.path, tree.shown)
        query = _query(plan.input, names=_names(plan.input.file_pattern), git=is_in_git(plan.place.path))
        findings.ended = await run_query(query, tree.folder, findings.take)
    return findings


async def _in_file(plan: TreePlan[SearchContentInput]) -> SearchMatches:
    """Search one file through stdin: with no path there is no file to swap."""
    place = plan.place
    findings = SearchMatches(plan.input.output_mode, plan.input.max_results, lambda _: place.shown, str)
    file, root = place.open_file(), os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if is_binary(os.pread(file, 1 << 13, 0)):
            raise Refusal(
                f"{place.shown} is a binary file, not text, so it is not searched. Use execute_command."
            )
        findings.ended = await run_query(_query(plan.input, stdin=True), root, findings.take, stdin=file)
    finally:
        os.close(file)
        os.close(root)
    return findings


def _query(
    params: SearchContentInput, *, names: str | None = None, git: bool = False, stdin: bool = False
) -> Query:
    mode: Mode = params.output_mode
    return Query(
        mode=mode,
        pattern=params.pattern,
        ignore_case=params.case_insensitive,
        multiline=params.multiline,
        context=params.context if mode == "content" else 0,
        names=names,
        git=git,
        stdin=stdin,
    )


def _names(pattern: str | None) -> str | None:
    """The file name part of a pattern, if it is simple enough to pass to ripgrep."""
    name = (pattern or "").rpartition("/")[2]
    return name if re.fullmatch(r"[\w.*?-]+", name, re.ASCII) and "**" not in name else None


SECONDS = 20.0
"""Bounds a search, below client timeouts; on timeout the matches so far are returned."""
RECORD_MAX = 1 << 20
"""Bytes of one record; a match in a file without newlines would be as large as the file."""


async def run_query(
    query: Query, folder: int, take: Callable[[bytes], bool], stdin: int | None = None
) -> SearchEnd:
    """Run a query in an open folder, which is searched even if it is moved or replaced. Raises Refusal without ripgrep.

    `take` is called in another thread with each record; returning False stops the search.
    """
    search, records = Search(), _Records(separator(query), take)
    run = partial(
        search.run,
        arguments(query),
        records.feed,
        seconds=SECONDS,
        cwd=folder,
        stdin=stdin,
    )
    try:
        ended = await run_search(FILES, search, run)
    except NoRipgrep as problem:
        raise Refusal(str(problem)) from None
    ended.too_long = records.too_long
    return ended


class _Records:
    """Splits output into records of bounded length."""

    def __init__(self, end: bytes, take: Callable[[bytes], bool]) -> None:
        self._end = end
        self._take = take
        self._rest = b""
        self._dropping = False
        self.too_long = 0
        """Number of records dropped."""

    def feed(self, chunk: bytes) -> bool:
        *whole, self._rest = (self._rest + chunk).split(self._end)
        for record in whole:
            if self._dropping:
                self._dropping = False
            elif not self._take(record):
                return False
        if len(self._rest) > RECORD_MAX:
            self._rest = b""
            self.too_long += not self._dropping
            self._dropping = True
        return True
