"""Permission requests as real agents send them: each way of naming a command is read, and none can hide a second one.

The requests are those seen on the wire. A hostile variant of each stands beside it, which no rule may allow.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from handrail.agents.requests._permission import permission_input
from handrail.config import AgentSection
from handrail.gate.risk import assess
from handrail.store.values import Caller, CommandPreview, DiffPreview, Json
from handrail.tools.agent_work import AgentWork, AgentWorkInput, WorkPlan

pytestmark = pytest.mark.anyio

LINE = "touch made-here && ls"
PLAIN = AgentSection(name="mind", command=("mind",))
GEMINI = AgentSection(name="gemini", command=("gemini",), title_is_command=True)
KIMI = AgentSection(name="kimi", command=("kimi",), input_in_content=True)


def said(*texts: str) -> list[JsonValue]:
    return [{"type": "content", "content": {"type": "text", "text": text}} for text in texts]


def kimi(input: Any, said_of_it: str, **more: Any) -> dict[str, Any]:
    return {
        "quirks": KIMI,
        "known": {"kind": "execute", "title": "Bash", "content": said(json.dumps(input))},
        "request": {"title": "Bash", "content": said(f"Requesting approval to {said_of_it}"), **more},
    }


def gemini(title: str, *texts: str, **more: Any) -> dict[str, Any]:
    request = {"kind": "execute", "title": title, "content": said(*texts), "locations": [], **more}
    return {"quirks": GEMINI, "request": request}


def codex(**more: Any) -> dict[str, Any]:
    raw = {
        "call_id": "c1",
        "turn_id": "1",
        "command": ["/bin/bash", "-lc", LINE],
        "parsed_cmd": [{"type": "unknown", "cmd": LINE}],
        "started_at_ms": 1763450000000,
        "available_decisions": ["approved", "approved_for_session", "abort"],
        "process_id": "7",
        "source": "unified_exec_startup",
        **more,
    }
    return {"request": {"kind": "execute", "title": LINE, "rawInput": raw}}


def copilot(**raw: Any) -> dict[str, Any]:
    return {"request": {"kind": "execute", "title": "Make a file", "rawInput": raw}}


def opencode(*, announced: Any, asked: Any, **more: Any) -> dict[str, Any]:
    known = {"kind": "execute", "title": "bash", "rawInput": announced, **more}
    asks: dict[str, Any] = {"kind": "execute", "title": "bash", "rawInput": asked, "locations": []}
    return {"known": known, "request": asks}


def goose(**raw: Any) -> dict[str, Any]:
    return {"request": {"kind": "other", "title": "developer: shell", "rawInput": raw}}


async def plan(
    home: Path,
    caller: Caller,
    request: dict[str, Any],
    known: dict[str, Any] | None = None,
    quirks: AgentSection = PLAIN,
) -> WorkPlan:
    """The plan for a request, as the handler and the tool make it."""
    params: Json = {"toolCall": {"toolCallId": "1", **request}}
    described = permission_input(params, known or {}, caller.workspace or "/", quirks)
    tool = AgentWork((home,), {"PATH": "/usr/local/bin:/usr/bin:/bin"})
    return await tool.plan(AgentWorkInput.model_validate(described), caller)


READ: dict[str, dict[str, Any]] = {
    "copilot": copilot(command=LINE, commands=[LINE], description="Make it"),
    "codex": codex(),
    "goose": goose(command=LINE),
    "gemini": gemini(LINE, "[current working directory /somewhere] (Make a file)"),
    "gemini without a description": gemini(LINE, "[current working directory /somewhere]"),
    "gemini in the background": gemini(LINE, "[current working directory /somewhere] [background]"),
    "kimi": kimi({"command": LINE}, f"Running: {LINE}"),
    "kimi in the background": kimi(
        {"command": LINE, "run_in_background": True}, f"Starting background: {LINE}"
    ),
    "kimi, shortened": kimi({"command": LINE}, f"Running: {LINE[:9]}…"),
    "opencode, announced late": opencode(announced={}, asked={"command": LINE}),
    "opencode, announced in part": opencode(announced={"cwd": "."}, asked={"command": LINE}),
    "opencode, announced whole": opencode(announced={"command": LINE, "cwd": "."}, asked={"command": LINE}),
    "fast-agent": {
        "request": {"kind": "execute", "title": "sh", "rawInput": {"command": ["/bin/sh", "-lc", LINE]}}
    },
}


@pytest.mark.parametrize("wire", READ.values(), ids=READ)
async def test_the_command_is_read_from_where_each_agent_puts_it(
    home: Path, root: Path, caller: Caller, wire: dict[str, Any]
) -> None:
    found = await plan(home, caller, **wire)
    assert [claim.opaque for claim in found.claims if claim.opaque] == []
    assert [claim.words for claim in found.claims] == [("touch", "made-here"), ("ls",)]
    assert assess(found.claims).level == "medium"
    assert isinstance(found.preview, CommandPreview)
    assert (found.preview.command.endswith(LINE) or LINE in found.preview.command, found.preview.cwd) == (
        True,
        str(root),
    )


async def test_an_empty_list_in_the_request_takes_nothing_away(home: Path, caller: Caller) -> None:
    wire = opencode(announced={"cwd": "."}, asked={"command": LINE}, locations=[{"path": "."}])
    found = await plan(home, caller, **wire)
    assert isinstance(found.preview, CommandPreview)
    assert found.preview.command == LINE
    assert assess(found.claims).level == "medium"
    wire = opencode(announced={"cwd": "."}, asked={"command": LINE}, locations=[{"path": "/etc/shadow"}])
    assert assess((await plan(home, caller, **wire)).claims).level == "high"


def goose_write(title: str, **raw: Any) -> dict[str, Any]:
    return {"kind": "other", "title": title, "rawInput": {"path": "a.txt", "content": "hello\n", **raw}}


async def test_a_file_that_goose_writes_is_shown_with_its_content(home: Path, caller: Caller) -> None:
    found = await plan(home, caller, goose_write("write · a.txt"))
    assert isinstance(found.preview, DiffPreview)
    assert (found.preview.path, "+hello" in found.preview.diff) == ("a.txt", True)
    assert [claim.action for claim in found.claims] == ["write"]
    assert assess(found.claims).level == "medium"


@pytest.mark.parametrize(
    "request_",
    [
        goose_write("write · b.txt"),
        goose_write("deploy: write · a.txt"),
        goose_write("write"),
        goose_write("write · a.txt", run="rm -rf /"),
    ],
)
async def test_other_tools_with_such_an_input_stay_unclear(
    home: Path, caller: Caller, request_: dict[str, Any]
) -> None:
    assert assess((await plan(home, caller, request_)).claims).level == "high"


EVIL = "rm -rf /"
HIDDEN: dict[str, dict[str, Any]] = {
    "copilot, another line in the list": copilot(command=LINE, commands=[LINE, EVIL]),
    "copilot, only another line in the list": copilot(command=LINE, commands=[EVIL]),
    "copilot, a list of no lines": copilot(command=LINE, commands=[{"run": EVIL}]),
    "copilot, a line beside nothing": copilot(command=LINE, commands=[LINE, 7]),
    "copilot, words for a list of lines": copilot(commands=[LINE], args=[EVIL]),
    "codex, a script as its source": codex(source=EVIL),
    "codex, a program as its process": codex(process_id={"run": EVIL}),
    "codex, a time that is none": codex(started_at_ms=[EVIL]),
    "codex, two lines": codex(cmd=EVIL),
    "goose, a second field": goose(command=LINE, code=EVIL),
    "goose, variables": goose(command=LINE, env={"BASH_ENV": "/tmp/x"}),
    "goose, a tool of another server": {
        "request": {"kind": "other", "title": "deploy: run", "rawInput": {"command": LINE}}
    },
    "goose, a server that is called like its shell": {
        "request": {"kind": "other", "title": "shell: run", "rawInput": {"command": LINE}}
    },
    "a command that is called a search": {
        "request": {"kind": "search", "title": "look", "rawInput": {"command": LINE}}
    },
    "goose, an edit with a line": {
        "request": {"kind": "edit", "title": "x", "rawInput": {"command": LINE}, "locations": [{"path": "a"}]}
    },
    "gemini, a title of words": gemini("Make a file", "no folder is named"),
    "gemini, nothing said": gemini(LINE),
    "gemini, a folder that ends early": gemini(LINE, "[in /etc] [in .] [in x"),
    "gemini, another folder": gemini(LINE, "[in /etc] (Make a file)"),
    "gemini, a folder with brackets": gemini(LINE, "[in /etc]/x] (y)"),
    "gemini, another title before": {
        **gemini(LINE, "[current working directory /w]"),
        "known": {"kind": "execute", "title": EVIL},
    },
    "gemini's title of another kind": gemini(LINE, "[current working directory /w]", kind="other"),
    "another agent's title": {**gemini(LINE, "[current working directory /w]"), "quirks": PLAIN},
    "kimi, another line in the request": kimi({"command": LINE}, f"Running: {EVIL}"),
    "kimi, another beginning": kimi({"command": EVIL}, f"Running: {LINE[:9]}…"),
    "kimi, no beginning at all": kimi({"command": LINE}, "Running: …"),
    "kimi, no line in the request": kimi({"command": LINE}, "do something"),
    "kimi, two texts": {
        "quirks": KIMI,
        "known": {"kind": "execute", "content": said(json.dumps({"command": LINE}), EVIL)},
        "request": {"content": said(f"Requesting approval to Running: {LINE}")},
    },
    "kimi, a second field": kimi({"command": LINE, "stdin": EVIL}, f"Running: {LINE}"),
    "another agent's text": {**kimi({"command": LINE}, f"Running: {LINE}"), "quirks": PLAIN},
    "opencode, another line before": opencode(announced={"command": EVIL}, asked={"command": LINE}),
    "opencode, another name before": opencode(announced={"cmd": EVIL}, asked={"command": LINE}),
    "opencode, variables before": opencode(announced={"env": {"A": "b"}}, asked={"command": LINE}),
    "opencode, two folders": opencode(announced={"cwd": "/etc"}, asked={"command": LINE, "workdir": "."}),
    "fast-agent, a script": {
        "request": {"kind": "execute", "title": "sh", "rawInput": {"command": ["/bin/sh", "-l", "x.sh"]}}
    },
    "a shell elsewhere": {
        "request": {"kind": "execute", "title": "sh", "rawInput": {"command": ["/tmp/sh", "-lc", LINE]}}
    },
}


@pytest.mark.parametrize("wire", HIDDEN.values(), ids=HIDDEN)
async def test_what_says_more_than_one_plain_line_is_never_allowed_by_a_rule(
    home: Path, caller: Caller, wire: dict[str, Any]
) -> None:
    found = await plan(home, caller, **wire)
    assert [claim.opaque for claim in found.claims if claim.opaque], "a person has to look at it"
    assert assess(found.claims).level == "high"


async def test_every_line_that_was_named_is_claimed(home: Path, caller: Caller) -> None:
    found = await plan(home, caller, **copilot(command=LINE, commands=[LINE, EVIL]))
    assert ("rm", "-rf", "/") in [claim.words for claim in found.claims], "a rule that denies it applies"


async def test_what_the_agent_says_in_its_request_is_on_the_card(root: Path) -> None:
    params: Json = {"toolCall": {"toolCallId": "1", "title": "Bash", "content": said("Running: x", "now")}}
    assert permission_input(params, {}, str(root), PLAIN)["explanation"] == "Running: x\nnow"
    told: Json = {"toolCallId": "1", "title": "Bash", "content": said("y" * 100_000)}
    assert len(str(permission_input({"toolCall": told}, {}, str(root), PLAIN)["explanation"])) < 5000
    bare = permission_input(
        {"toolCall": {"toolCallId": "1", "title": "a", "content": said("a")}}, {}, "/", PLAIN
    )
    assert "explanation" not in bare, "the title is shown anyway"


DIFF = "Index: {0}\n===================\n--- {0}\n+++ {0}\n@@ -1,1 +1,1 @@\n-old\n+new\n"


@pytest.mark.parametrize("field", ["diff", "patch", "unified_diff"])
async def test_a_diff_in_the_input_is_shown_as_one(
    home: Path, root: Path, caller: Caller, field: str
) -> None:
    path = str(root / "a.py")
    request = {"kind": "edit", "title": "edit", "rawInput": {"filepath": path, field: DIFF.format(path)}}
    found = await plan(home, caller, request)
    assert isinstance(found.preview, DiffPreview)
    assert (found.preview.path, found.preview.added, found.preview.removed) == (path, 1, 1)
    assert found.preview.diff == DIFF.format(path)
    assert [(claim.action, claim.resource, claim.inside) for claim in found.claims] == [("write", path, True)]


async def test_a_change_by_path_is_shown_as_a_diff(home: Path, root: Path, caller: Caller) -> None:
    new, old, gone = (str(root / name) for name in ("new.py", "old.py", "gone.py"))
    changes = {
        new: {"type": "add", "content": "one\n"},
        old: {"type": "update", "unified_diff": "@@ -1,1 +1,1 @@\n-old\n+new\n", "move_path": None},
        gone: {"delete": {"content": "x\n"}},
    }
    found = await plan(home, caller, {"kind": "edit", "title": "edit", "rawInput": {"changes": changes}})
    assert isinstance(found.preview, DiffPreview)
    assert (found.preview.added, found.preview.removed) == (2, 2)
    assert "+one\n" in found.preview.diff
    assert {claim.resource for claim in found.claims} == {new, old, gone}


@pytest.mark.parametrize(
    "hostile",
    [
        "--- a\n+++ a\n@@ -1,100 +1,100 @@\n-x\n+y\n--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n",
        "--- a/x\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n",
        "Index: /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n",
        "rename from a\nrename to /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n",
    ],
)
async def test_a_file_that_only_the_diff_names_is_claimed_too(
    home: Path, root: Path, caller: Caller, hostile: str
) -> None:
    request = {"kind": "edit", "title": "e", "rawInput": {"filepath": str(root / "a"), "diff": hostile}}
    found = await plan(home, caller, request)
    assert [claim.resource for claim in found.claims if not claim.inside]


async def test_what_looks_like_no_diff_is_not_shown_as_one(home: Path, root: Path, caller: Caller) -> None:
    request = {"kind": "edit", "title": "e", "rawInput": {"filepath": str(root / "a"), "diff": "trust me"}}
    assert not isinstance((await plan(home, caller, request)).preview, DiffPreview)
