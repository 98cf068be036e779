"""`handrail agent` driven by acpx, a client that knows nothing of Handrail; the daemon is real, the model is scripted."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import anyio
import pytest
from tests.real_agents.acpx import KEY, Driven, Json, Run, driving
from tests.real_agents.hosting import SLOW
from tests.real_agents.install import MODULES, node
from tests.support import processes
from tests.support.agent_toolset import SAMPLE_SERVER
from tests.support.daemon_home import until
from tests.support.model_server.script import Call, Turn, script

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

WRITING = Turn("I write it.", "write_file", {"path": "notes.txt", "content": "by acpx\n"})
OK, FAILED, TIMED_OUT, DENIED, INTERRUPTED = 0, 1, 3, 5, 130
"""How acpx ends."""
CANCELLED = -32800
"""The protocol's code for a request that was withdrawn."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Driven]:
    with driving() as driven:
        yield driven
        assert driven.model.refused == [], "what our agent sends is what real providers take"
        assert driven.model.strange == []


@pytest.fixture
async def driven(stage: Driven) -> AsyncGenerator[Driven]:
    """With nothing left behind by any test, but for commands that the daemon keeps for people to read."""
    began = processes.boot_ticks()
    yield stage
    await until(lambda: not stage.left(began), SLOW)


def other_server(driven: Driven) -> str:
    """A file that hands over an MCP server which is not ours."""
    args = ["-P", str(SAMPLE_SERVER), str(driven.folder / "log")]
    server = {"name": "somebody", "type": "stdio", "command": sys.executable, "args": args, "env": []}
    named = driven.folder / "servers.json"
    named.write_text(json.dumps({"mcpServers": [server]}))
    return str(named)


READING = (
    Turn("I look.", "read_file", {"path": "a.txt"}, think="Let me see."),
    Turn("It says hello.", usage={"input": 100, "output": 20}),
)


async def test_it_opens_our_own_door_itself_and_answers_in_messages_that_are_all_well_formed(
    driven: Driven,
) -> None:
    (driven.workspace / "a.txt").write_text("hello\n")
    ran = await driven.acpx("--format", "json", "exec", script(*READING, prompt="What is it?\nSay."))

    assert (ran.code, ran.err, ran.stop, ran.said) == (OK, "", "end_turn", "I look.It says hello.")
    ran.is_well_formed()
    thoughts = [each["content"]["text"] for each in ran.of("agent_thought_chunk")]
    assert "".join(thoughts) == "Let me see."
    assert ran.of("session_info_update")[0]["title"] == "What is it?"
    assert [each["used"] for each in ran.of("usage_update")][-1] == 120
    assert [each["name"] for each in ran.of("available_commands_update")[0]["availableCommands"]] == [
        "help", "model", "compact",
    ]  # fmt: skip
    assert all(each["params"].get("sessionId") for each in ran.messages if "session/" in each.get("method", "")
               and each["method"] != "session/new")  # fmt: skip
    assert KEY not in ran.out
    (opened,) = [each["params"] for each in ran.messages if each.get("method") == "session/new"]
    assert opened["mcpServers"] == []
    (call,), (ended,) = ran.of("tool_call"), ran.of("tool_call_update")
    assert (call["title"], call["kind"], call["_meta"]) == ("Read a.txt", "read", {"toolName": "read_file"})
    assert call["locations"] == [{"path": str(driven.workspace / "a.txt")}]
    assert (ended["toolCallId"], ended["status"]) == (call["toolCallId"], "completed")
    assert "hello" in ended["content"][0]["content"]["text"]
    (kept,) = [each for each in await driven.person.get("calls") if each["status"] == "done"][:1]
    assert (kept["tool"], kept["caller"]["workspace"]) == ("read_file", str(driven.workspace))


async def test_people_read_the_answer_with_what_was_done(driven: Driven) -> None:
    (driven.workspace / "a.txt").write_text("hello\n")
    told = await driven.acpx("exec", script(*READING))

    assert told.code == OK
    for words in ("[tool] Read a.txt (completed)", "It says hello.", "[done] end_turn"):
        assert words in told.out


async def test_what_a_person_has_to_allow_waits_in_the_inbox_and_the_client_is_told_where(
    driven: Driven,
) -> None:
    written, command = driven.workspace / "notes.txt", "touch ran && echo so-it-ran"
    running = Turn("I run it.", "execute_command", {"command": command})
    turns = (WRITING, WRITING, running, Turn("So be it."))
    async with driven.running("--format", "json", "exec", script(*turns)) as ran:
        await ran.hears(lambda ran: ran.of("tool_call"))
        asked = await driven.person.question("notes.txt")
        await ran.hears(lambda ran: "handrail approve" in json.dumps(ran.of("tool_call_update")))
        assert ran.of("tool_call")[0]["status"] == "in_progress"
        (await driven.person.answer(asked, "deny", "Not today.")).raise_for_status()
        await ran.hears(lambda ran: len(ran.of("tool_call")) == 2)
        assert not written.exists()
        await driven.person.allow("notes.txt")
        await driven.person.allow("touch ran")

    assert (ran.code, ran.stop, ran.said) == (OK, "end_turn", "I write it.I write it.I run it.So be it.")
    ran.is_well_formed()
    assert [each for each in ran.messages if each.get("method") == "session/request_permission"] == []
    ids = [each["toolCallId"] for each in ran.of("tool_call")]
    denied, allowed, run = (_last_update(ran, each) for each in ids)
    assert [each["status"] for each in (denied, allowed, run)] == ["failed", "completed", "completed"]
    assert ["Not today." in json.dumps(each) for each in (denied, allowed)] == [True, False]
    assert "Not today." in json.dumps(driven.model.asked[-1].body["messages"])
    assert written.exists()
    call = ran.of("tool_call")[-1]
    assert (call["kind"], call["rawInput"]) == ("execute", {"command": command})
    assert "so-it-ran" in run["content"][0]["content"]["text"]
    assert (driven.workspace / "ran").exists()


def _last_update(ran: Run, id: str) -> Json:
    return [each for each in ran.of("tool_call_update") if each["toolCallId"] == id][-1]


@pytest.mark.parametrize(
    ("policy", "code", "status", "result"),
    [("--approve-all", OK, "completed", "forty-two"), ("--deny-all", DENIED, "failed", "denied")],
)
async def test_only_somebody_elses_tool_is_asked_for_in_the_client_and_the_agent_goes_on(
    driven: Driven, policy: str, code: int, status: str, result: str
) -> None:
    (driven.workspace / "a.txt").write_text("hello\n")
    calls = (Call("somebody__echo", {"text": "forty-two"}), Call("read_file", {"path": "a.txt"}))
    given = ("--format", "json", policy, "--mcp-config", other_server(driven))
    ran = await driven.acpx(*given, "exec", script(Turn("I ask.", calls=calls), Turn("I go on.")))

    assert (ran.code, ran.stop, ran.said) == (code, "end_turn", "I ask.I go on.")
    ran.is_well_formed()
    (asked,) = [each for each in ran.messages if each.get("method") == "session/request_permission"]
    theirs, ours = ran.of("tool_call")
    assert asked["params"]["toolCall"]["toolCallId"] == theirs["toolCallId"]
    assert asked["params"]["toolCall"]["rawInput"] == {"text": "forty-two"}
    ended = _last_update(ran, theirs["toolCallId"])
    assert ended["status"] == status
    assert result in ended["content"][0]["content"]["text"]
    assert result in json.dumps(driven.model.asked[-1].body["messages"][-1])
    assert _last_update(ran, ours["toolCallId"])["status"] == "completed"


async def test_without_a_key_it_fails_with_every_way_to_give_one(driven: Driven) -> None:
    nowhere = {"OLLAMA_BASE_URL": "http://127.0.0.1:9/v1"}
    ran = await driven.acpx("--format", "json", "exec", "Hello?", env=nowhere)

    assert ran.code == FAILED
    assert ran.messages[-1]["error"]["code"] == -32000
    for way in ("ANTHROPIC_API_KEY", "editor", "handrail keys set", "OPENAI_BASE_URL"):
        assert way in ran.messages[-1]["error"]["message"]


async def test_a_model_is_chosen_on_the_command_line_and_one_that_there_is_not_is_refused(
    driven: Driven,
) -> None:
    haiku, nothing = "anthropic:claude-haiku-5-5", "anthropic:claude-of-tomorrow"
    ran = await driven.acpx("--format", "json", "--model", haiku, "exec", script(Turn("Here.")))
    refused = await driven.acpx("--format", "json", "--model", nothing, "exec", script(Turn("Never.")))

    assert (ran.code, ran.stop, ran.said) == (OK, "end_turn", "Here.")
    assert driven.model.asked[-1].body["model"] == "claude-haiku-5-5"
    assert refused.code == FAILED
    assert haiku in refused.messages[-1]["error"]["message"]


async def test_an_interrupt_ends_the_command_that_ran_the_agent_and_everything_of_it(driven: Driven) -> None:
    running = Turn("I run it.", "execute_command", {"command": "touch begun && sleep 2001"})
    async with driven.running("--format", "json", "exec", script(running, Turn("Never."))) as ran:
        await ran.hears(lambda ran: ran.of("tool_call"))
        await driven.person.allow("sleep 2001")
        await until((driven.workspace / "begun").exists)
        ran.process.send_signal(signal.SIGINT)

    assert ran.code in {OK, INTERRUPTED}  # whichever of the two it notices first
    assert ran.stop == "cancelled"
    (call,) = [each for each in await driven.person.get("calls") if "sleep 2001" in each["title"]]
    assert (await driven.person.stopped(call["id"]))["status"] == "cancelled"
    assert "Never." not in ran.said


async def test_a_client_that_is_killed_takes_the_agent_and_its_question_with_it(driven: Driven) -> None:
    writing = Turn("I write it.", "write_file", {"path": "killed.txt", "content": "never"})
    async with driven.running("--format", "json", "exec", script(writing)) as ran:
        await ran.hears(lambda ran: ran.of("tool_call"))
        asked = await driven.person.question("killed.txt")
        ran.process.kill()

    assert (await driven.person.settled(asked["call_id"]))["status"] == "cancelled"
    assert (await driven.person.answer(asked, "allow")).status_code == 409
    assert not (driven.workspace / "killed.txt").exists()


async def test_a_client_that_is_out_of_patience_ends_the_agent_wherever_it_is(driven: Driven) -> None:
    hanging = script(Turn("I begin and", hang=True))
    ran = await driven.acpx("--timeout", "4", "--format", "json", "exec", hanging)

    assert ran.code == TIMED_OUT
    await until(lambda: driven.model.open == [])


async def test_a_session_goes_on_from_one_command_to_the_next_and_is_set_cancelled_and_closed(
    driven: Driven,
) -> None:
    made = await driven.acpx("--format", "quiet", "sessions", "new")
    assert made.code == OK
    first = await driven.acpx("--format", "json", script(Turn("First."), prompt="Begin."))
    assert (first.code, first.stop, first.said) == (OK, "end_turn", "First.")

    chosen = await driven.acpx("set", "model", "anthropic:claude-haiku-5-5")
    thinking = await driven.acpx("set", "thought_level", "high")
    wrong = await driven.acpx("set", "thought_level", "endless")
    assert (chosen.code, thinking.code, wrong.code) == (OK, OK, FAILED)

    hanging = script(Turn("I begin and", hang=True), prompt="Go on.")
    async with driven.running("--format", "json", hanging) as ran:
        await ran.hears(lambda ran: "and" in ran.said)
        cancel = await driven.acpx("cancel")
    assert (cancel.code, ran.stop) == (OK, "cancelled")
    assert (await driven.model.endings())[-1] == "left"

    last = await driven.acpx("--format", "json", script(Turn("Last."), prompt="And now?"))
    assert (last.code, last.stop, last.said) == (OK, "end_turn", "Last.")
    asked = driven.model.asked[-1].body
    assert (asked["model"], "thinking" in asked) == ("claude-haiku-5-5", True)
    for words in ("Begin.", "First.", "Go on.", "I begin and", "And now?"):
        assert words in json.dumps(asked["messages"])

    listed = await driven.acpx("sessions", "list")
    assert made.out.strip() in listed.out
    assert "Begin." in listed.out
    assert (await driven.acpx("sessions", "close")).code == OK


async def test_a_session_is_taken_up_again_when_the_agent_was_killed(driven: Driven) -> None:
    assert (await driven.acpx("sessions", "new")).code == OK
    first = await driven.acpx("--format", "json", script(Turn("First."), prompt="Begin."))
    assert first.stop == "end_turn"
    kill_agents(driven)

    again = await driven.acpx("--format", "json", script(Turn("Again."), prompt="And now?"))

    assert (again.code, again.stop, again.said) == (OK, "end_turn", "Again.")
    said = json.dumps(driven.model.asked[-1].body["messages"])
    assert "Begin." in said
    assert "First." in said
    assert (await driven.acpx("sessions", "close")).code == OK


def kill_agents(driven: Driven) -> None:
    """Those that acpx keeps."""
    found = [
        each
        for each in processes.started_since(0, frozenset(), (driven.folder,))
        if f"{driven.program} agent" in each.command
    ]
    assert found
    for each in found:
        os.kill(each.pid, signal.SIGKILL)


async def test_the_official_typescript_client_cancels_it_in_both_ways_and_loads_what_it_said(
    driven: Driven,
) -> None:
    sdk = MODULES / "@agentclientprotocol" / "sdk" / "dist" / "acp.js"
    told = {
        "command": [str(driven.program), "agent"],
        "cwd": str(driven.workspace),
        "first": script(Turn("It is forty-two."), prompt="How many?"),
        "cancelled": script(Turn("Let me count", hang=True), prompt="Are you sure?"),
        "withdrawn": script(Turn("I count again", hang=True), prompt="Really?"),
        "last": script(Turn("I am sure."), prompt="So?"),
        "heard": {"cancelled": "Let me count", "withdrawn": "I count again"},
    }
    command = [str(node()), str(Path(__file__).with_name("client.mjs")), str(sdk), json.dumps(told)]
    with anyio.fail_after(2 * SLOW):
        done = await anyio.run_process(command, env={**driven.home.environment, **driven.way}, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
    seen = json.loads(done.stdout)
    assert seen["began"]["stops"] == ["end_turn", "cancelled", CANCELLED]
    assert seen["loaded"]["stop"] == "end_turn"
    assert seen["loaded"]["said"] == "I am sure."
    assert all(words in seen["loaded"]["replayed"]["prompts"] for words in ("How many?", "sure?", "Really?"))
    assert seen["loaded"]["replayed"]["answers"].startswith("It is forty-two.")
    for words in ("It is forty-two.", "Let me count", "I count again"):
        assert words in seen["began"]["said"]
        assert words in json.dumps(driven.model.asked[-1].body["messages"])
