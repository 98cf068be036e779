"""Our reducers of the Agent Host Protocol beside those of VS Code itself, which come from its own bundle."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.editors.install import NEWEST
from tests.real_agents.install import node
from tests.support import ahp_actions
from tests.support.ahp_actions import (
    CHANGESET_ACTIONS,
    CHAT_ACTIONS,
    ROOT_ACTIONS,
    SESSION_ACTIONS,
    TERMINAL_ACTIONS,
    Obj,
    new_chat,
)
from tests.support.ahp_cases import CASES

from handrail.server.ahp import reducers
from handrail.server.ahp.reducers import (
    Reducer,
    reduce_changeset,
    reduce_chat,
    reduce_root,
    reduce_session,
    reduce_terminal,
)

pytestmark = pytest.mark.newest_editor

Reduce = Callable[[str, Obj, list[Obj]], list[Obj]]
"""Of a channel's kind, a state and actions: the state after each action."""

KNOWN_BY = {
    "root": "root/configChanged",
    "session": "session/inputNeededSet",
    "chat": "chat/pendingMessageSet",
    "changeset": "changeset/fileSet",
    "terminal": "terminal/exited",
}
"""An action that only this reducer knows: names are minified, and actions are not."""
PROGRAM = """
import { createInterface } from "node:readline";
for await (const line of createInterface({ input: process.stdin })) {
  const { kind, actions, ...given } = JSON.parse(line);
  let state = given.state;
  const states = actions.map((action) => (state = reducers[kind](state, action, () => undefined)));
  console.log(JSON.stringify(states));
}
"""


def extract_reducers(bundle: str) -> str:
    """The part of the bundle that has the reducers: they stand together, after the function that reports an unknown action."""
    begin = bundle.rindex("function ", 0, bundle.index("`Unhandled action type: "))
    report = bundle[begin:].removeprefix("function ").partition("(")[0]
    names, last = dict[str, str](), begin
    for kind, action in KNOWN_BY.items():
        at = bundle.index(f'case"{action}"', begin)
        heads = re.findall(r"function ([\w$]+)\(\w+,\w+,\w+\)\{switch\(", bundle[begin:at])
        names[kind], last = heads[-1], max(last, at)
    end = bundle.index("}}", bundle.index(f"default:return {report}(", last)) + 2
    table = ", ".join(f"{kind}: {name}" for kind, name in names.items())
    return f"{bundle[begin:end]}\nconst reducers = {{ {table} }};\n"


@pytest.fixture(scope="module")
def theirs() -> str:
    """The source of VS Code's reducers."""
    bundle = NEWEST.vscode / "out" / "vs" / "code" / "browser" / "workbench" / "workbench.js"
    return extract_reducers(bundle.read_text())


@pytest.fixture(scope="module")
def reduce_in_vscode(theirs: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reduce]:
    path: Path = tmp_path_factory.mktemp("reducers") / "reducers.mjs"
    path.write_text(theirs + PROGRAM)
    with subprocess.Popen(
        [str(node()), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines, answers = process.stdin, process.stdout

        def reduce(kind: str, state: Obj, actions: list[Obj]) -> list[Obj]:
            lines.write(json.dumps({"kind": kind, "state": state, "actions": actions}) + "\n")
            lines.flush()
            return json.loads(answers.readline())

        yield reduce
        lines.close()


SESSION: Obj = {"title": "", "status": 1, "activeClients": [], "chats": [{"resource": "a", "title": ""}]}
TERMINAL: Obj = {"content": [], "cols": 80, "rows": 24, "lifecycle": {"status": "running"}}
KINDS: dict[str, tuple[Reducer, Obj, st.SearchStrategy[Obj]]] = {
    "root": (reduce_root, {"agents": [], "config": {"values": {"x": 1}}}, ROOT_ACTIONS),
    "session": (reduce_session, {**SESSION, "config": {"values": {}}}, SESSION_ACTIONS),
    "chat": (reduce_chat, new_chat(), CHAT_ACTIONS),
    "changeset": (reduce_changeset, {"status": "computing", "files": []}, CHANGESET_ACTIONS),
    "terminal": (reduce_terminal, TERMINAL, TERMINAL_ACTIONS),
}


def find_actions(module: ModuleType) -> set[str]:
    """The actions that a module names."""
    return set(re.findall(r'"(\w+/\w+)"', Path(str(module.__file__)).read_text()))


def drop_undefined(action: Obj) -> Obj:
    """The action as it is sent: a field without a value is left out."""
    return {name: value for name, value in action.items() if value is not None}


@pytest.mark.parametrize("kind", KINDS)
def test_each_state_is_the_one_that_vscode_computes(reduce_in_vscode: Reduce, kind: str) -> None:
    reduce, first, actions = KINDS[kind]

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(actions.map(drop_undefined), min_size=1, max_size=30))
    def compare(steps: list[Obj]) -> None:
        state = first
        for step, theirs in zip(steps, reduce_in_vscode(kind, first, steps), strict=True):
            state = reduce(state, step)
            assert state == theirs, step

    compare()


@pytest.mark.parametrize("name", CASES)
def test_a_listed_case_gives_the_state_that_vscode_computes(reduce_in_vscode: Reduce, name: str) -> None:
    case = CASES[name]
    reduce, state, _ = KINDS[case.kind]
    *_, before, theirs = [state, *reduce_in_vscode(case.kind, state, [*case.before, case.action])]
    for step in case.before:
        state = reduce(state, step)
    assert state == before
    assert reduce(state, case.action) == theirs
    assert (theirs != before) == case.changes


def test_each_action_of_the_reducers_has_a_case() -> None:
    listed = {step["type"] for case in CASES.values() for step in (*case.before, case.action)}
    assert find_actions(reducers) <= listed


def test_each_action_of_the_reducers_is_known_to_vscode_and_generated(theirs: str) -> None:
    known = find_actions(reducers)
    assert len(known) > 40
    assert known <= find_actions(ahp_actions)
    assert known <= set(re.findall(r'case"(\w+/\w+)"', theirs))
