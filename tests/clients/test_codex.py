"""Codex trusts our hooks by the hash that it computes itself."""

from pathlib import Path

from tests.support.client_machine import ClientMachine

from handrail.clients.codex import trust_hash


def test_the_hash_is_the_one_that_codex_reports() -> None:
    """As `hooks/list` of `codex app-server` 0.166.0 gave it for this entry."""
    line = "/usr/bin/handrail hook codex || {}"
    tail = "{ [ $? -eq 2 ] || echo 'Handrail did not answer; refused' >&2; exit 2; }"
    gate = {
        "type": "command",
        "command": line.format(tail),
        "timeout": 86400,
        "statusMessage": "Waiting in Handrail",
    }
    report = {"type": "command", "command": line.format("true"), "timeout": 30}
    hashes = (
        trust_hash("pre_tool_use", {"matcher": "*", "hooks": [gate]}),
        trust_hash("stop", {"hooks": [report]}),
    )
    assert hashes == (
        "sha256:73bf8388615e05840c01df6742e621bcf959c9ebf63c1fae3d2673cd072ecf5f",
        "sha256:cbbd21fd407589c5a5c7f49a806257c134d9a505881edaf71d16060dd52d62f0",
    )


def test_each_hook_is_trusted_at_its_place(tmp_path: Path) -> None:
    machine = ClientMachine(tmp_path, "codex")
    folder = machine.home / ".codex"
    folder.mkdir()
    mine = '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}'
    (folder / "hooks.json").write_text(mine)

    machine.connect("codex")

    text = (folder / "config.toml").read_text()
    assert f'[hooks.state."{folder}/hooks.json:pre_tool_use:1:0"]' in text
    assert f'[hooks.state."{folder}/hooks.json:stop:0:0"]' in text
    assert text.count("trusted_hash = ") == 7
