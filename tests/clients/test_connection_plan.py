"""Connecting writes the entries and nothing else; disconnecting leaves every byte as it was."""

import json
import os
import shlex
import stat
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.client_machine import ClientMachine

from handrail.clients.client_facts import HostedAgent
from handrail.clients.config_edit import Format, append_item, load, remove_item, remove_value, set_value
from handrail.clients.connection_plan import ConnectRefused, connect, plan_connect, plan_disconnect, stage
from handrail.clients.connections import Connections
from handrail.clients.known_clients import NAMES, find_client

GEMINI = ".gemini/settings.json"
SETTINGS = """\
{
\t// mine, with tabs
\t"model": "opus", /* keep */
\t"hooks": {
\t\t"BeforeTool": [
\t\t\t{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo"}]}, // the linter
\t\t],
\t},
}"""


@pytest.fixture
def machine(tmp_path: Path) -> ClientMachine:
    return ClientMachine(tmp_path, *NAMES)


def write(machine: ClientMachine, path: str, text: str) -> Path:
    file = machine.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


@pytest.mark.parametrize("name", [name for name in NAMES if name != "vscode"])  # which gets an extension
def test_connect_twice_changes_nothing_and_disconnect_restores_every_byte(
    machine: ClientMachine, name: str
) -> None:
    before = machine.snapshot()

    agents = (HostedAgent("Gemini CLI", ("/bin/gemini", "--acp")),)

    assert machine.connect(name, agents=agents)
    connected = machine.snapshot()
    assert connected != before
    assert not machine.connect(name, agents=agents)
    assert machine.snapshot() == connected

    assert machine.disconnect(name) == []
    assert machine.snapshot() == before
    assert machine.connections.all() == []
    assert [*machine.connections.originals.glob("*")] == []


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_comments_order_mode_and_symlink_stay(machine: ClientMachine, newline: str) -> None:
    real = write(machine, "dotfiles/gemini.json", SETTINGS.replace("\n", newline))
    real.chmod(0o640)
    link = machine.home / GEMINI
    link.parent.mkdir()
    link.symlink_to(real)
    before = machine.snapshot()

    machine.connect("gemini")

    text = real.read_bytes().decode()
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "// mine, with tabs" in text
    assert "// the linter" in text
    assert text.count("\r\n") == (text.count("\n") if newline == "\r\n" else 0)
    groups = load("json", text)["hooks"]["BeforeTool"]
    assert [group["matcher"] for group in groups] == ["Bash", "*"]

    machine.disconnect("gemini")
    assert machine.snapshot() == before


def test_a_file_that_changed_since_loses_only_our_entries_and_that_is_said(machine: ClientMachine) -> None:
    file = write(machine, GEMINI, SETTINGS)
    machine.connect("gemini", has_mcp=False)
    file.write_text(set_value("json", file.read_text(), ("theme",), "dark"))

    notes = machine.disconnect("gemini")

    assert notes == [f"{file} has changed since; only Handrail's own entries are removed."]
    assert load("json", file.read_text()) == {**load("json", SETTINGS), "theme": "dark"}
    assert "// the linter" in file.read_text()
    assert "Handrail" not in file.read_text()


def test_an_entry_that_was_changed_by_hand_stays_and_is_named(machine: ClientMachine) -> None:
    file = machine.home / ".gemini/settings.json"
    machine.connect("gemini")
    data = json.loads(file.read_text())
    data["mcpServers"]["handrail"]["timeout"] = 5
    file.write_text(json.dumps(data))

    notes = machine.disconnect("gemini")

    assert f"{file} mcpServers.handrail is not what Handrail wrote, and stays." in notes
    assert json.loads(file.read_text()) == {"mcpServers": {"handrail": data["mcpServers"]["handrail"]}}


def test_gemini_goes_on_asking_unless_a_single_question_was_asked_for(machine: ClientMachine) -> None:
    policy = machine.home / ".gemini/policies/handrail.toml"
    machine.connect("gemini")
    assert not policy.exists()

    machine.connect("gemini", is_single_question=True)
    assert tomllib.loads(policy.read_text())["rule"][0]["decision"] == "allow"
    assert not machine.connect("gemini", is_single_question=True)

    machine.connect("gemini")
    assert not policy.parent.exists()


@pytest.mark.parametrize("options", [{}, {"has_hooks": False, "is_single_question": True}])
def test_connecting_gemini_never_lets_tools_pass_without_a_hook(
    machine: ClientMachine, options: dict[str, bool]
) -> None:
    machine.connect("gemini", **options)

    assert "handrail.toml" not in {Path(name).name for name in machine.snapshot()}


def test_a_replaced_entry_comes_back_even_if_the_file_changed(machine: ClientMachine) -> None:
    mine = {"command": "handrail", "args": ["mcp"]}
    file = write(machine, ".qwen/settings.json", json.dumps({"mcpServers": {"handrail": mine}}))
    machine.connect("qwen")
    assert machine.json(".qwen/settings.json")["mcpServers"]["handrail"]["command"] == machine.launcher.path
    file.write_text(file.read_text() + "\n")

    machine.disconnect("qwen")

    assert json.loads(file.read_text()) == {"mcpServers": {"handrail": mine}}


def test_a_file_that_we_created_stays_if_something_else_was_put_into_it(machine: ClientMachine) -> None:
    machine.connect("kimi")
    file = machine.home / ".kimi-code/config.toml"
    file.write_text(file.read_text() + "\n# mine\n[models]\na = 1\n")

    machine.disconnect("kimi")

    assert "# mine" in file.read_text()
    assert "handrail" not in file.read_text()
    assert not (machine.home / ".kimi-code/mcp.json").exists()


def test_a_file_that_is_gone_is_no_problem(machine: ClientMachine) -> None:
    machine.connect("copilot")
    (machine.home / ".copilot/mcp-config.json").unlink()

    notes = machine.disconnect("copilot")

    assert notes == [f"{machine.home}/.copilot/mcp-config.json is gone."]
    assert machine.snapshot().keys() == {"project"}


@pytest.mark.parametrize(
    ("client", "path", "text", "words"),
    [
        ("gemini", ".gemini/settings.json", '{"a": ', "line 1, column 7: a value was expected"),
        ("claude", ".claude/settings.json", '{\n  // mine\n  "a": 1\n}', "(line 2, column 3)"),
        ("codex", ".codex/config.toml", "a = [", "Invalid value"),
        ("codex", ".codex/hooks.json", '{"hooks": []}', "stands in its way"),
        ("gemini", ".gemini/settings.json", '{"mcpServers": 3}', "stands in its way"),
        ("goose", ".config/goose/config.yaml", "extensions: {a: 1}\n", "not in block style"),
        ("cline", ".cline/hooks/PreToolUse", "#!/bin/sh\n", "exists and is not Handrail's"),
    ],
)
def test_what_cannot_be_edited_is_refused_and_nothing_is_written(
    machine: ClientMachine, client: str, path: str, text: str, words: str
) -> None:
    file = write(machine, path, text)
    before = machine.snapshot()

    with pytest.raises(ConnectRefused) as refused:
        machine.connect(client)

    assert str(file) in str(refused.value)
    assert words in str(refused.value)
    assert machine.snapshot() == before
    assert machine.connections.all() == []


def test_a_read_only_file_and_one_that_is_not_text_are_refused(machine: ClientMachine) -> None:
    file = write(machine, ".cursor/mcp.json", "{}")
    file.chmod(0o444)
    with pytest.raises(ConnectRefused, match=r"is read-only\. Run `chmod u\+w"):
        machine.connect("cursor")

    file.chmod(0o644)
    file.write_bytes(b"\xff{}")
    with pytest.raises(ConnectRefused, match="not UTF-8"):
        machine.connect("cursor")

    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ConnectRefused, match="not a regular file"):
        machine.connect("cursor")


def test_a_file_that_changes_after_it_was_shown_is_not_written(machine: ClientMachine) -> None:
    client = find_client("qwen")
    plan = plan_connect(client, machine.setup(client), machine.connections)
    file = write(machine, ".qwen/settings.json", "{}")

    with pytest.raises(ConnectRefused, match="changed after the change was shown"):
        connect(plan, machine.connections, machine.environ)

    assert file.read_text() == "{}"


def test_a_change_of_the_launcher_replaces_the_entries_and_keeps_the_original(machine: ClientMachine) -> None:
    file = write(machine, ".claude/settings.json", '{"model": "opus"}')
    before = machine.snapshot()
    machine.connect("claude", has_mcp=False)
    moved = type(machine.launcher)("/usr/bin/handrail", "/srv/it's here")

    assert machine.connect("claude", has_mcp=False, launcher=moved)

    text = file.read_text()
    assert "/opt/hand rail" not in text
    assert text.count("HANDRAIL_HOME=/srv/it's here") == 9
    machine.disconnect("claude")
    assert machine.snapshot() == before


def test_leaving_out_the_hooks_later_removes_them(machine: ClientMachine) -> None:
    machine.connect("copilot")
    machine.connect("copilot", has_hooks=False)
    assert not (machine.home / ".copilot/hooks").exists()
    assert (machine.home / ".copilot/mcp-config.json").exists()


def test_a_lost_copy_of_the_original_still_leaves_only_the_users_entries(machine: ClientMachine) -> None:
    file = write(machine, GEMINI, SETTINGS)
    machine.connect("gemini", has_mcp=False)
    for copy in machine.connections.originals.iterdir():
        copy.unlink()

    machine.disconnect("gemini")

    assert load("json", file.read_text()) == load("json", SETTINGS)


def test_records_that_cannot_be_read_stop_everything(machine: ClientMachine) -> None:
    machine.connect("zed")
    machine.connections.file.write_text("{")
    with pytest.raises(Exception, match="records what was written"):
        Connections(machine.data).all()
    assert stat.S_IMODE(machine.connections.file.stat().st_mode) == 0o600


def test_settings_of_the_machine_are_written_for_everybody_and_removed(machine: ClientMachine) -> None:
    client = find_client("claude")
    plan = plan_connect(client, machine.setup(client, is_locked=True, has_mcp=False), machine.connections)
    assert [str(change.path) for change in plan.changes] == [
        f"{machine.machine.root}/etc/claude-code/managed-settings.json"
    ]
    assert plan.connection.key == "claude locked"
    connect(plan, machine.connections, machine.environ)
    assert stat.S_IMODE(plan.changes[0].path.stat().st_mode) == 0o644
    machine.disconnect("claude", "claude locked")
    assert not machine.machine.root.exists()


def test_a_plan_that_needs_root_becomes_commands_and_changes_no_file(machine: ClientMachine) -> None:
    client = find_client("claude")
    setup = machine.setup(client, is_locked=True, has_mcp=False)
    plan = plan_connect(client, setup, machine.connections)
    path = plan.changes[0].path

    [command] = stage(plan, machine.connections)

    assert not path.exists()
    *install, staged, target = shlex.split(command)
    assert (install, target) == (["sudo", "install", "-D", "-m", "644"], str(path))
    assert Path(staged).read_bytes() == plan.changes[0].after
    path.parent.mkdir(parents=True)
    path.write_bytes(Path(staged).read_bytes())
    assert not plan_connect(client, setup, machine.connections).is_change
    known = machine.connections.find("claude locked")
    assert known is not None
    removal = plan_disconnect(client, known, machine.connections)
    assert stage(removal, machine.connections, forget=True) == [f"sudo rm {path}"]


NAME = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
SCALAR = st.one_of(st.booleans(), st.integers(-(2**40), 2**40), NAME)
GAP = st.sampled_from(["", " ", "\n", "\t", "\n    ", "// note\n", "/* note */", "\n\n  "])


@st.composite
def jsonc_value(draw: st.DrawFn, depth: int = 0) -> str:
    kinds = ["scalar"] if depth > 2 else ["scalar", "object", "list"]
    kind = draw(st.sampled_from(kinds))
    if kind == "scalar":
        return json.dumps(draw(SCALAR))
    entries = draw(st.lists(jsonc_value(depth + 1), max_size=3))
    if kind == "object":
        keys = draw(st.lists(NAME, min_size=len(entries), max_size=len(entries), unique=True))
        entries = [f"{json.dumps(key)}{draw(GAP)}:{value}" for key, value in zip(keys, entries, strict=True)]
    inside = ",".join(draw(GAP) + entry + draw(GAP) for entry in entries)
    comma = "," if entries and draw(st.booleans()) else ""
    brackets = "{}" if kind == "object" else "[]"
    return brackets[0] + inside + comma + draw(GAP) + brackets[1]


SERVER = st.sampled_from(["git", "Far Away", "handrail-2", "ü", "t.s"])
ENTRY = st.fixed_dictionaries(
    {"command": st.just("npx"), "args": st.lists(st.sampled_from(["-y", "a b", "@x/y"]), max_size=3)},
    optional={
        "env": st.dictionaries(st.sampled_from(["A", "API_KEY"]), NAME, max_size=2),
        "timeout": SCALAR,
        "disabled": st.booleans(),
    },
)


@st.composite
def jsonc_servers(draw: st.DrawFn) -> str:
    entries = draw(st.dictionaries(SERVER, ENTRY, min_size=1, max_size=3))
    members = [
        f"{draw(GAP)}{json.dumps(name)}:{draw(GAP)}{json.dumps(entry, indent=draw(st.sampled_from([None, 2])))}"
        for name, entry in entries.items()
    ]
    comma = "," if draw(st.booleans()) else ""
    return f'{draw(GAP)}"mcpServers": {{{",".join(members)}{comma}{draw(GAP)}}}{draw(GAP)}'


@st.composite
def jsonc_file(draw: st.DrawFn, *, has_servers: bool = False) -> str:
    keys = draw(st.lists(st.sampled_from(["model", "hooks ", "mcp", "a.b", "ü"]), max_size=4, unique=True))
    members = [f"{draw(GAP)}{json.dumps(key)}: {draw(jsonc_value())}{draw(GAP)}" for key in keys]
    if has_servers:
        members.insert(draw(st.integers(0, len(members))), draw(jsonc_servers()))
    comma = "," if members and draw(st.booleans()) else ""
    text = draw(GAP) + "{" + ",".join(members) + comma + draw(GAP) + "}" + draw(GAP)
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@st.composite
def toml_file(draw: st.DrawFn, *, has_servers: bool = False) -> str:
    blank = st.sampled_from(["", "# note", "   ", "\t# tab"])
    lines: list[str] = []
    for name in draw(st.lists(SERVER, min_size=1, max_size=2, unique=True)) if has_servers else ():
        lines += [
            f"[mcp_servers.{json.dumps(name, ensure_ascii=False)}] # mine",
            'command = "npx"',
            draw(blank),
        ]
        if draw(st.booleans()):
            lines += [
                f"[mcp_servers.{json.dumps(name, ensure_ascii=False)}.env]",
                'API_KEY = "x"',
                draw(blank),
            ]
    for table in draw(
        st.lists(st.sampled_from(["", "a", "b.c", "mcp_servers.other"]), max_size=4, unique=True)
    ):
        lines += ([] if table == "" or not lines else [draw(blank)]) + (
            [f"[{table}]  # head"] if table else []
        )
        for at in range(draw(st.integers(0, 3))):
            lines += [
                f"key{len(lines)}_{at} = {json.dumps(draw(SCALAR), ensure_ascii=False)}  # why",
                draw(blank),
            ]
    if lines and not lines[0].startswith("["):
        return _joined(draw, lines)
    return _joined(draw, lines)


def _joined(draw: st.DrawFn, lines: list[str]) -> str:
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return newline.join(lines) + (newline if draw(st.booleans()) else "")


@settings(max_examples=25)
@given(jsonc_file())
def test_any_json_file_is_restored_and_keeps_its_other_values(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    machine = ClientMachine(tmp_path_factory.mktemp("m"))
    file = write(machine, ".qwen/settings.json", text)

    machine.connect("qwen")
    data = load("json", file.read_bytes().decode())
    assert {key: value for key, value in data.items() if key not in ("hooks", "mcpServers")} == load(
        "json", text
    )

    machine.disconnect("qwen")
    assert file.read_bytes() == text.encode()


def is_movable(entry: dict[str, Any] | None) -> bool:
    """Whether an entry of ENTRY has nothing that keeps it in the client."""
    if entry is None or entry.get("disabled") is True:
        return False
    values = entry.get("env", {}).values()
    return all(isinstance(each, str) and each.isprintable() and "{" not in each for each in values)


@settings(max_examples=25)
@given(
    st.one_of(
        st.tuples(st.just("qwen"), st.just(".qwen/settings.json"), jsonc_file(has_servers=True)),
        st.tuples(st.just("codex"), st.just(".codex/config.toml"), toml_file(has_servers=True)),
    ),
    st.booleans(),
)
def test_servers_that_are_moved_leave_the_file_and_come_back_with_every_byte(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, str, str], is_connected: bool
) -> None:
    name, path, text = case
    kind: Format = "toml" if path.endswith(".toml") else "json"
    key = "mcp_servers" if kind == "toml" else "mcpServers"
    try:
        before = load(kind, text)
    except Exception:  # two tables with one name, made by chance
        return
    machine = ClientMachine(tmp_path_factory.mktemp("m"))
    file = write(machine, path, text)
    if is_connected:
        machine.connect(name)
    chosen = machine.plan_moves(name).moves
    names = {each.entry.name for each in chosen}
    assert {name for name in ("git", "Far Away") if is_movable(before[key].get(name))} <= names

    machine.connect(name, moves=True)
    after = load(kind, file.read_bytes().decode())
    kept = {each: value for each, value in before[key].items() if each not in names}
    assert {each: value for each, value in after[key].items() if each != "handrail"} == kept
    mine = {key, "hooks"}
    assert {at: value for at, value in after.items() if at not in mine and value} == {
        at: value for at, value in before.items() if at not in mine and value
    }
    assert not machine.connect(name), "what was moved stays moved"

    machine.disconnect(name)
    assert file.read_bytes() == text.encode()


@settings(max_examples=25)
@given(toml_file())
def test_any_toml_file_is_restored_and_keeps_its_other_values(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    try:
        before = load("toml", text)
    except Exception:  # two tables with one name, made by chance
        return
    machine = ClientMachine(tmp_path_factory.mktemp("m"))
    file = write(machine, ".codex/config.toml", text)

    machine.connect("codex")
    assert file.read_bytes().startswith(text.encode())
    data = deepcopy(load("toml", file.read_bytes().decode()))
    assert data["mcp_servers"].pop("handrail")["args"] == ["mcp"]
    assert len(data.pop("hooks")["state"]) == 7
    assert {key: value for key, value in data.items() if value} == {
        key: each for key, each in before.items() if each
    }

    machine.disconnect("codex")
    assert file.read_bytes() == text.encode()


@given(st.sampled_from(["json", "toml"]), st.data())
def test_any_edit_and_its_inverse_keep_all_values(format: Format, data: st.DataObject) -> None:
    text = data.draw(jsonc_file() if format == "json" else toml_file())
    try:
        before = load(format, text)
    except Exception:  # two tables with one name, made by chance
        return
    with_item = append_item(format, text, ("zz", "list"), {"a": "b\x7f\"'\\"})
    assert load(format, with_item)["zz"] == {"list": [{"a": "b\x7f\"'\\"}]}
    whole = set_value(format, with_item, ("yy", "k.x"), {"c": [1, "é"], "d": {"e": True}})
    back = remove_value(
        format, remove_item(format, whole, ("zz", "list"), {"a": "b\x7f\"'\\"}), ("yy", "k.x")
    )
    left = {key: value for key, value in load(format, back).items() if value not in ({}, {"list": []})}
    assert left == {key: value for key, value in before.items() if value != {}}


def test_plans_to_disconnect_write_nothing(machine: ClientMachine) -> None:
    machine.connect("opencode")
    before = machine.snapshot()
    known = machine.connections.find("opencode")
    assert known is not None
    plan = plan_disconnect(find_client("opencode"), known, machine.connections)
    assert plan.is_change
    assert machine.snapshot() == before
