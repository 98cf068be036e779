"""search_content: lines that match a regular expression.

Owns what a search is asked and how its findings are gathered and told (findings.py). It does not know which
program searches (seek.py) or which files may be seen (tree.py).
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Refusal, Tool
from handrail.store.value import Caller, Result
from handrail.terminal.ripgrep import MOST_CHARACTERS, complain
from handrail.terminal.safe_regex import DIALECT, BadPattern, check_characters
from handrail.tools.answer import Format, Input, answer, brief
from handrail.tools.files.lines import is_binary
from handrail.tools.search.findings import Findings, Line
from handrail.tools.search.ignore import is_in_git
from handrail.tools.search.query import Mode, Query
from handrail.tools.search.seek import seek
from handrail.tools.search.tree import TreePlan, open_tree, plan_tree


class SearchContentInput(Input):
    pattern: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MOST_CHARACTERS,
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


class SearchContentOutput(BaseModel):
    path: str | None = Field(None, description="Where was searched.")
    lines: list[Line] | None = Field(
        None, description="Matching lines and their context, in output_mode content."
    )
    files: list[str] | None = Field(None, description="Files with a match, in every output_mode.")
    counts: dict[str, int] | None = Field(None, description="Matching lines by file, in output_mode count.")
    total: int | None = Field(None, description="How many matching lines, or files, are given.")
    truncated: bool | None = Field(None, description="There may be more matches than are given.")


class SearchContent(Tool[SearchContentInput, TreePlan[SearchContentInput]]):
    """Finds lines by pattern."""

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
        return f"Search for {brief(input.pattern, 60)}"

    async def plan(self, input: SearchContentInput, caller: Caller) -> TreePlan[SearchContentInput]:
        try:
            check_characters(input.pattern, MOST_CHARACTERS)
        except BadPattern as problem:
            raise Refusal(str(problem)) from None
        return plan_tree(input.path, input, caller, self._own)

    async def run(self, plan: TreePlan[SearchContentInput], call: CallReport) -> Result:
        findings = await (_in_file(plan) if plan.place.is_file else _in_folder(plan))
        if findings.ended.complaint:
            raise Refusal(str(complain(findings.ended.complaint, plan.input.pattern)))
        text, data = findings.told(plan.place.shown, plan.input.pattern)
        return answer(text, data, plan.input.response_format)


async def _in_folder(plan: TreePlan[SearchContentInput]) -> Findings:
    with open_tree(plan, plan.input.file_pattern) as tree:
        findings = Findings(plan.input.output_mode, plan.input.max_results, tree.path, tree.shown)
        query = _query(plan.input, names=_names(plan.input.file_pattern), git=is_in_git(plan.place.path))
        findings.ended = await seek(query, tree.folder, plan.place.path, findings.take)
    return findings


async def _in_file(plan: TreePlan[SearchContentInput]) -> Findings:
    """One file is given to the search as its input: no path, so nothing to swap."""
    place = plan.place
    findings = Findings(plan.input.output_mode, plan.input.max_results, lambda _: place.shown, str)
    file, root = place.open_file(), os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if is_binary(os.pread(file, 1 << 13, 0)):
            raise Refusal(
                f"{place.shown} is a binary file, not text, so it is not searched. Use execute_command."
            )
        findings.ended = await seek(_query(plan.input, stdin=True), root, "/", findings.take, stdin=file)
    finally:
        os.close(file)
        os.close(root)
    return findings


def _query(
    asked: SearchContentInput, *, names: str | None = None, git: bool = False, stdin: bool = False
) -> Query:
    mode: Mode = asked.output_mode
    return Query(
        mode=mode,
        pattern=asked.pattern,
        ignore_case=asked.case_insensitive,
        multiline=asked.multiline,
        context=asked.context if mode == "content" else 0,
        names=names,
        git=git,
        stdin=stdin,
    )


def _names(pattern: str | None) -> str | None:
    """The part of a file pattern that is about names, where it is plain enough to be given to the search."""
    name = (pattern or "").rpartition("/")[2]
    return name if re.fullmatch(r"[\w.*?-]+", name, re.ASCII) and "**" not in name else None
