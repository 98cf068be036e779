"""The plugin of opencode lets a tool run only on a clear allow."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.client_machine import ClientMachine

from handrail.clients.launcher_path import Launcher
from handrail.clients.opencode import OpenCode

NODE = shutil.which("node")
CALL = """\
import { Handrail } from %s
const hooks = await Handrail({ directory: "/work" })
const output = { args: { command: "rm x", extra: 1 } }
try {
  await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s", callID: "c" }, output)
  console.log(JSON.stringify({ ran: output.args }))
} catch (error) {
  console.log(JSON.stringify({ refused: error.message }))
}
const ended = %s
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s", callID: "c" }, ended)
console.error(JSON.stringify(ended))
"""


@pytest.mark.skipif(NODE is None, reason="needs Node, which opencode's plugins are written for")
@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (
            'echo \'{"effect": "allow", "reason": "", "input": null}\'',
            {"ran": {"command": "rm x", "extra": 1}},
        ),
        ('echo \'{"effect": "pass", "reason": ""}\'', {"ran": {"command": "rm x", "extra": 1}}),
        ('echo \'{"effect": "allow", "input": {"command": "ls"}}\'', {"ran": {"command": "ls"}}),
        ('echo \'{"effect": "deny", "reason": "not that"}\'', {"refused": "not that"}),
        ("echo maybe", None),
        ('echo \'{"effect": "allow"}\'; exit 1', None),
        ("kill -9 $$", None),
        ("", None),
        ('echo \'{"effect": "perhaps"}\'', {"refused": "Handrail refused this call."}),
    ],
)
def test_a_tool_runs_only_on_a_clear_allow(tmp_path: Path, answer: str, result: object) -> None:
    told, before, after, _ = call_plugin(tmp_path, answer, {"output": "done"})

    assert told == result if result else told["refused"].startswith("Handrail did not answer; refused")
    call = {"session": "s", "call": "c", "tool": "bash", "cwd": "/work"}
    assert before == {"event": "tool.execute.before", **call, "args": {"command": "rm x", "extra": 1}}
    assert after == {"event": "tool.execute.after", **call, "args": {}, "output": "done", "metadata": {}}


@pytest.mark.skipif(NODE is None, reason="needs Node, which opencode's plugins are written for")
@pytest.mark.parametrize(
    ("result", "output"),
    [
        ({"content": [{"type": "text", "text": "one"}, {"type": "image", "data": "AAAA"}]}, "one\n[image]"),
        ({"content": []}, ""),
        ({}, ""),
        ({"output": "", "content": [{"type": "text", "text": "one"}]}, ""),
    ],
)
def test_the_result_of_an_mcp_tool_is_the_text_of_its_parts(tmp_path: Path, result: Any, output: str) -> None:
    *_, after, _ = call_plugin(tmp_path, 'echo \'{"effect": "allow"}\'', result)
    assert after["output"] == output


@pytest.mark.skipif(NODE is None, reason="needs Node, which opencode's plugins are written for")
@pytest.mark.parametrize(
    ("result", "read"),
    [
        ({"output": "done"}, {"output": "A person edited it.\n\ndone"}),
        (
            {"content": [{"type": "text", "text": "done"}]},
            {"content": [{"type": "text", "text": "A person edited it."}, {"type": "text", "text": "done"}]},
        ),
    ],
)
def test_the_model_reads_what_a_person_changed(tmp_path: Path, result: Any, read: Any) -> None:
    answer = {"effect": "allow", "input": {"command": "ls"}, "feedback": "A person edited it."}
    *_, after, ended = call_plugin(tmp_path, f"echo '{json.dumps(answer)}'", result)
    assert (after["output"], ended) == ("done", read)


def call_plugin(tmp_path: Path, answer: str, result: Any) -> list[Any]:
    """One call through the plugin: what became of it, what the hook was told before and after, and the result for the model."""
    machine = ClientMachine(tmp_path, OpenCode.name)
    program = machine.home / "hand rail"
    program.write_text(
        f'#!/bin/sh\ncat >> "{machine.home}/payloads"; echo >> "{machine.home}/payloads"\n{answer}\n'
    )
    program.chmod(0o755)
    machine.connect("opencode", launcher=Launcher(str(program)))
    plugin = machine.home / "plugin.mjs"
    plugin.write_text((machine.home / ".config/opencode/plugin/handrail.js").read_text())
    script = machine.home / "call.mjs"
    script.write_text(CALL % (json.dumps(str(plugin)), json.dumps(result)))

    done = subprocess.run([NODE or "", script], check=True, capture_output=True, text=True, timeout=60)
    told = (machine.home / "payloads").read_text().splitlines()
    return [json.loads(line) for line in (done.stdout, *told, done.stderr)]
