"""Hooks from end to end: real `handrail hook` processes with Claude's payloads, a real daemon, and a person."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from tests.support.daemon_home import BOUND, Home, eventually, until
from tests.support.hook_process import HookProcess, command_line, decision, payload, run_hook
from tests.support.mcp_client import Generation, agent
from tests.support.person_client import Json, Person

from handrail.framing import HOOK_MAX

pytestmark = pytest.mark.anyio

TRIES = 30
"""Measurements of a short time on a machine that other tests keep busy."""


async def newest_call(person: Person, about: str) -> Json:
    """The newest call whose title holds these words."""

    async def look() -> Json | None:
        calls: list[Json] = await person.get("calls")
        return next((call for call in calls if about in call["title"]), None)

    return await eventually(look)


def start_client(home: Home, code: str, *words: str) -> subprocess.Popen[bytes]:
    """A program of its own in the place of a client."""
    argv, pipe = [sys.executable, "-c", code, *words], subprocess.PIPE
    return subprocess.Popen(argv, env=home.environment, stdin=pipe, stdout=pipe)


def end_client(client: subprocess.Popen[bytes]) -> None:
    client.kill()
    client.wait(BOUND)
    for pipe in (client.stdin, client.stdout):
        assert pipe is not None
        pipe.close()


def find_own_seconds(home: Home, sent: Json, enough: float) -> float:
    """The time that a hook takes more than the start of its program. A busy machine is tried until it is short enough."""
    hook = command_line(["claude"])
    start = [*hook[: hook.index("-m")], "-c", "import handrail.__main__, handrail.door.hook"]

    def run(words: list[str]) -> float:
        began = time.monotonic()
        subprocess.run(
            words, input=json.dumps(sent).encode(), env=home.environment, capture_output=True, check=False
        )
        return time.monotonic() - began

    least = math.inf
    hooks, starts = list[float](), list[float]()
    while len(hooks) < 5 or (least >= enough and len(hooks) < TRIES):
        hooks.append(run(hook))
        starts.append(run(start))
        least = min(hooks) - min(starts)
    return least


async def test_an_allowed_command_runs_and_its_report_settles_the_call(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, command = shared_person, {"command": "touch allowed && echo hi"}
    hook = HookProcess(shared_home, payload(workspace, "Bash", command)).send()
    question = await person.question("touch allowed")
    (await person.answer(question, "allow")).raise_for_status()
    status, out, _ = await hook.answer()
    assert (status, decision(out)) == (0, {"permissionDecision": "allow"})
    assert question["preview"]["command"] == command["command"]
    assert [claim["words"][0] for claim in question["claims"]] == ["touch", "echo"]
    assert (question["caller"]["door"], question["caller"]["client"]) == ("hook", "claude")
    assert question["caller"]["workspace"] == str(workspace)
    running = await person.call(question["call_id"])
    assert (running["status"], running["assurance"]) == ("running", "advisory")

    error = {"error": "Exit code 3\nhi"}
    ended = payload(workspace, "Bash", command, "PostToolUseFailure", **error)
    assert await run_hook(shared_home, ended) == (0, "", "")
    call = await person.settled(question["call_id"])
    assert (call["status"], call["result"]["data"]["exit_code"]) == ("done", 3)
    assert "hi" in call["result"]["data"]["output"]


async def test_a_denial_tells_the_reason(shared_home: Home, shared_person: Person, workspace: Path) -> None:
    hook = HookProcess(shared_home, payload(workspace, "Bash", {"command": "touch denied"})).send()
    await shared_person.deny("touch denied", "use the Makefile")
    told = decision((await hook.answer())[1])
    assert told["permissionDecision"] == "deny"
    assert "use the Makefile" in told["permissionDecisionReason"]


async def test_an_edited_command_goes_back_as_updated_input(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, command = shared_person, {"command": "touch wrong", "description": "d"}
    hook = HookProcess(shared_home, payload(workspace, "Bash", command)).send()
    question = await person.question("touch wrong")
    assert (question["can_edit"], question["why_not_edit"]) == (True, "")
    where = f"approvals/{question['id']}"
    other_client = {**question["input"], "client": "codex"}
    refused = await person.ask("POST", f"{where}/edit", {"input": other_client})
    assert refused.status_code == 422
    new = {**question["input"], "input": {**command, "command": "touch right"}}
    edit = await person.post(f"{where}/edit", {"input": new})
    assert edit["preview"]["command"] == "touch right"
    words = (
        'A person changed this call before allowing it: `command` is "touch right" instead of "touch wrong".'
    )
    assert edit["tells"] == words
    await person.post(f"{where}/answer", {"answer": "allow", "input": new, "digest": edit["digest"]})
    told = decision((await hook.answer())[1])
    right = {**command, "command": "touch right"}
    assert told == {"permissionDecision": "allow", "updatedInput": right, "additionalContext": words}
    done = payload(workspace, "Bash", new["input"], "PostToolUse", tool_response={"stdout": "", "stderr": ""})
    await run_hook(shared_home, done)
    assert (await person.settled(question["call_id"]))["status"] == "done"


async def test_an_edit_of_a_file_shows_its_diff_and_can_be_undone(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    person, file = shared_person, workspace / "poem.txt"
    file.write_text("one\ntwo\n")
    edit = {"file_path": str(file), "old_string": "two", "new_string": "three"}
    hook = HookProcess(shared_home, payload(workspace, "Edit", edit)).send()
    question = await person.question("poem.txt")
    assert question["preview"]["kind"] == "diff"
    assert question["preview"]["diff"].endswith(" one\n-two\n+three\n")
    (await person.answer(question, "allow")).raise_for_status()
    assert decision((await hook.answer())[1])["permissionDecision"] == "allow"
    file.write_text("one\nthree\n")  # the client does it
    done = payload(workspace, "Edit", edit, "PostToolUse", tool_response={"filePath": str(file)})
    await run_hook(shared_home, done)
    call = await person.settled(question["call_id"])
    assert call["result"]["data"]["applied"].endswith("-two\n+three\n")
    plan = await person.get(f"undo/{question['call_id']}")
    assert [each["does"] for each in plan["files"]] == ["restore"]
    await person.post(f"undo/{question['call_id']}", {"digest": plan["digest"]})
    assert file.read_text() == "one\ntwo\n"


async def test_what_rules_decide_asks_nobody(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("x\n")
    calls: list[tuple[str, Json]] = [
        ("Read", {"file_path": str(workspace / "a.txt")}),
        ("TodoWrite", {"todos": []}),
    ]
    for tool, read in calls:
        status, out, _ = await run_hook(shared_home, payload(workspace, tool, read, call=f"id-{tool}"))
        assert (status, decision(out)) == (0, {"permissionDecision": "allow"}), tool
        call = await newest_call(shared_person, tool)
        assert call["status"] == "running"
        await run_hook(shared_home, payload(workspace, tool, read, "PostToolUse", f"id-{tool}"))
        assert (await shared_person.settled(call["id"]))["status"] == "done"


async def test_our_own_tools_pass_without_a_record(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    before = len(await shared_person.get("calls"))
    sent = payload(workspace, "mcp__handrail__execute_command", {"command": "ls"})
    async with agent(shared_home, workspace, name="claude-code"):  # a door of this process, as its hooks are
        assert await run_hook(shared_home, sent) == (0, "", "")
        asked = {**sent, "hook_event_name": "PermissionRequest", "tool_use_id": ""}
        _, out, _ = await run_hook(shared_home, asked)
    assert decision(out)["decision"] == {"behavior": "allow"}
    assert len(await shared_person.get("calls")) == before


async def test_a_server_that_only_has_our_name_asks_until_the_client_has_started_ours(
    home: Home, person: Person, workspace: Path
) -> None:
    sent = payload(workspace, "mcp__handrail__execute_command", {"command": "ls"}, call="first")
    hook = HookProcess(home, sent).send()
    asked = await person.question("handrail: execute_command")
    assert "not started Handrail's own" in asked["claims"][-1]["opaque"]
    await person.deny("handrail: execute_command", "who is this?")
    assert "who is this?" in decision((await hook.answer())[1])["permissionDecisionReason"]
    vouched = {**sent, "mcp_server": {"name": "handrail", "source": "user"}}
    assert await run_hook(home, vouched) == (0, "", ""), "this client tells where the server comes from"
    async with agent(home, workspace, name="claude-code"):
        assert await run_hook(home, sent) == (0, "", "")
    home.kill()
    home.up()
    assert await run_hook(home, sent) == (0, "", ""), "a restart does not forget it"


async def test_a_question_is_withdrawn_when_the_hook_is_killed(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    hook = HookProcess(shared_home, payload(workspace, "Bash", {"command": "touch killed"})).send()
    question = await shared_person.question("touch killed")
    hook.kill()
    call = await shared_person.settled(question["call_id"])
    assert (call["status"], call["by"]) == ("cancelled", "client")


async def test_a_hook_leaves_when_its_client_ends_even_through_a_shell(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    sent = json.dumps(payload(workspace, "Bash", {"command": "touch orphaned"}))
    line = " ".join(f"'{word}'" for word in command_line(["claude"]))
    code = "import subprocess,sys; subprocess.run(['sh','-c',sys.argv[1]], input=sys.argv[2].encode())"
    client = start_client(shared_home, code, f"{line} || exit 2", sent)
    question = await shared_person.question("touch orphaned")
    end_client(client)
    assert (await shared_person.settled(question["call_id"]))["status"] == "cancelled"


async def test_a_running_call_ends_as_unknown_with_its_client(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    sent = json.dumps(payload(workspace, "Read", {"file_path": str(workspace / "gone")}, call="gone"))
    code = (
        "import pathlib,subprocess,sys; subprocess.run(sys.argv[3:], input=sys.argv[2].encode(), stdout=2); "
        "pathlib.Path(sys.argv[1]).touch(); input()"
    )
    answered = workspace / "answered"
    client = start_client(shared_home, code, str(answered), sent, *command_line(["claude"]))
    await until(answered.exists)
    call = await newest_call(shared_person, "gone")
    assert call["status"] == "running"
    end_client(client)
    settled = await shared_person.settled(call["id"])
    assert (settled["status"], "client ended" in settled["message"]) == ("interrupted", True)


async def test_a_persons_cancel_says_that_the_client_goes_on(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    read = {"file_path": str(workspace / "slow.txt")}
    await run_hook(shared_home, payload(workspace, "Read", read, call="slow"))
    call = await newest_call(shared_person, "slow.txt")
    await shared_person.post(f"calls/{call['id']}/cancel")
    settled = await shared_person.settled(call["id"])
    assert settled["status"] == "cancelled"
    assert "cannot stop it" in settled["result"]["text"]
    assert [each["pid"] for each in settled["receipt"]["processes_left"]] == [os.getpid()]


@pytest.mark.parametrize(
    ("sent", "words", "sentence"),
    [
        (b"{", ("claude",), "not a valid JSON object"),
        (b"[]", ("claude",), "not a valid JSON object"),
        (b"\xff", ("claude",), "not valid UTF-8"),
        (b'{"hook_event_name": "PreToolUse", "tool_name": "Bash"}', ("nobody",), "nobody"),
        (b'{"hook_event_name": 7}', ("claude",), "not understood"),
    ],
)
async def test_a_payload_that_cannot_be_judged_is_refused_with_a_sentence(
    shared_home: Home, sent: bytes, words: tuple[str, ...], sentence: str
) -> None:
    status, out, err = await run_hook(shared_home, sent, *words)
    assert (status, out) == (2, "")
    assert sentence in err


async def test_a_payload_of_50_megabytes_is_refused_without_being_sent(
    shared_home: Home, workspace: Path
) -> None:
    sent = json.dumps(payload(workspace, "Write", {"content": "x" * 50_000_000})).encode()
    status, _, err = await run_hook(shared_home, sent)
    assert status == 2
    assert f"longer than {HOOK_MAX:,} bytes" in err
    assert await run_hook(shared_home, sent, "claude", "PostToolUse") == (0, "", "")


async def test_without_a_daemon_a_call_is_refused_at_once_and_a_report_is_silent(workspace: Path) -> None:
    home = Home(workspace / "home", "")
    began, sent = time.monotonic(), payload(workspace, "Bash", {"command": "ls"})
    status, _, err = await run_hook(home, sent)
    took = time.monotonic() - began
    assert (status, "is not running" in err) == (2, True)
    assert took < BOUND / 10, "it must not wait for a daemon, nor start one"
    assert find_own_seconds(home, sent, 0.1) < 0.1, "what it takes besides the start of the program"
    assert not home.places.database.exists()
    for event in ("PostToolUse", "Stop", "Notification", "SessionStart", "UserPromptSubmit"):
        assert await run_hook(home, payload(workspace, "Bash", {}, event)) == (0, "", ""), event


async def test_when_the_daemon_is_killed_a_waiting_call_is_refused_and_running_ones_end_as_reported(
    home: Home, person: Person, workspace: Path
) -> None:
    file = workspace / "kept.txt"
    file.write_text("old\n")
    write = {"file_path": str(file), "content": "new\n"}
    kept = await allow_hook(home, person, payload(workspace, "Write", write), "kept.txt")
    code = (
        "import subprocess,sys; subprocess.run(sys.argv[2:], input=sys.argv[1].encode(), stdout=2); input()"
    )
    sent = json.dumps(payload(workspace, "Bash", {"command": "touch lost"}, call="lost"))
    client = start_client(home, code, sent, *command_line(["claude"]))
    lost = await person.allow("touch lost")
    await eventually(lambda: is_started(person, lost))
    waiting = HookProcess(home, payload(workspace, "Bash", {"command": "touch asked"}, call="asked")).send()
    asked = (await person.question("touch asked"))["call_id"]

    home.kill()
    end_client(client)
    status, _, err = await waiting.answer()
    assert (status, "ended before it answered" in err) == (2, True)
    file.write_text("new\n")
    home.up()

    withdrawn, over = await person.settled(asked), await person.settled(lost)
    assert (withdrawn["status"], "ask again" in withdrawn["message"]) == ("interrupted", True)
    assert (over["status"], "client ended" in over["message"]) == ("interrupted", True)
    running = await person.call(kept)
    assert (running["status"], running["client_gone"]) == ("running", False)
    ended = payload(workspace, "Write", write, "PostToolUse", tool_response={"filePath": str(file)})
    assert await run_hook(home, ended) == (0, "", "")
    done = await person.settled(kept)
    assert (done["status"], done["result"]["data"]["exit_code"]) == ("done", None)
    assert done["result"]["data"]["applied"].endswith("-old\n+new\n")

    again = HookProcess(home, payload(workspace, "Bash", {"command": "touch asked"}, call="again")).send()
    await person.deny("touch asked", "once more")
    assert "once more" in decision((await again.answer())[1])["permissionDecisionReason"]


async def test_an_allow_outlives_a_killed_daemon_until_the_client_repeats_its_call_once(
    home: Home, person: Person, workspace: Path
) -> None:
    sent = payload(workspace, "Bash", {"command": "touch later"}, call="first")
    status, out, _ = await run_hook(home, sent, "claude", "--timeout", "10")
    told = decision(out)
    question = await person.question("touch later")
    assert (status, told["permissionDecision"]) == (0, "deny")
    assert question["call_id"] in told["permissionDecisionReason"]
    (await person.answer(question, "allow")).raise_for_status()
    (session,) = await person.get("clients")

    home.kill()
    home.up()

    (known,) = await person.get("clients")
    assert known == {**session, "tool": ""}, "the client runs on, and is listed before its next hook"
    again = {**sent, "tool_use_id": "second"}
    assert decision((await run_hook(home, again))[1]) == {"permissionDecision": "allow"}
    assert (await person.call(question["call_id"]))["allowed_by"] is not None
    other = HookProcess(home, {**sent, "tool_use_id": "third"}).send()
    await person.deny("touch later", "once was enough")
    assert "once was enough" in decision((await other.answer())[1])["permissionDecisionReason"]
    ended = payload(workspace, "Bash", {"command": "touch later"}, "PostToolUse", "second", tool_response={})
    await run_hook(home, ended)
    assert (await person.settled(question["call_id"]))["status"] == "done"


async def allow_hook(home: Home, person: Person, sent: Json, about: str) -> str:
    """The call of a hook that a person allowed, once the client knows."""
    hook = HookProcess(home, sent).send()
    call = await person.allow(about)
    assert decision((await hook.answer())[1])["permissionDecision"] == "allow"
    return call


async def is_started(person: Person, call: str) -> bool:
    return (await person.call(call))["allowed_by"] is not None


async def test_an_invalid_mark_asks_like_any_other(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    mark = {"HANDRAIL_HOSTED": "made up"}
    hook = HookProcess(
        shared_home, payload(workspace, "Bash", {"command": "touch m"}), environment=mark
    ).send()
    await shared_person.question("touch m")
    hook.kill()


@pytest.mark.parametrize("generation", ["legacy", "2026-07-28"])
async def test_the_permission_prompt_tool_answers_in_one_text_block(
    shared_home: Home, shared_person: Person, workspace: Path, generation: Generation
) -> None:
    person = shared_person
    async with agent(shared_home, workspace, generation=generation, name="claude-code") as client:
        listed = {tool.name: tool for tool in (await client.client.list_tools()).tools}
        assert listed["approve"].output_schema is None
        wrong = {"tool_name": "Bash", "input": {"command": "touch wrong"}, "tool_use_id": "toolu_p1"}
        asked = client.ask("approve", **wrong)
        question = await person.question("touch wrong")
        assert question["caller"]["client"] == "claude-code"
        new = {**question["input"], "input": {"command": "touch right"}}
        edit = await person.post(f"approvals/{question['id']}/edit", {"input": new})
        assert edit["tells"] == "Nothing: the client runs it as edited."
        body = {"answer": "allow", "input": new, "digest": edit["digest"]}
        await person.post(f"approvals/{question['id']}/answer", body)
        told = await asked.told()
        assert (told.data, told.is_error) == (None, False)
        assert json.loads(told.text) == {"behavior": "allow", "updatedInput": {"command": "touch right"}}
        assert (await person.settled(question["call_id"]))["status"] == "done"

        asked = client.ask("approve", tool_name="Bash", input={"command": "touch no"})
        await person.deny("touch no", "not that one")
        denied = json.loads((await asked.told()).text)
        assert (denied["behavior"], "not that one" in denied["message"]) == ("deny", True)

        asked = client.ask("approve", tool_name="Bash", input={"command": "touch gone"})
        question = await person.question("touch gone")
        asked.scope.cancel()
        assert (await person.settled(question["call_id"]))["status"] == "cancelled"

        bad = await client.use("approve", tool_name="", input={})
        assert json.loads(bad.text)["behavior"] == "deny"


PROMPTING = """
import json, subprocess, sys
door = subprocess.Popen(
    [sys.executable, "-m", "handrail", "mcp", "--workspace", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "1"}}
asked = {"tool_name": "mcp__handrail__execute_command", "input": {"command": "ls"}, "tool_use_id": sys.argv[2]}
for about in (
    {"id": 1, "method": "initialize", "params": about},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "approve", "arguments": asked}},
):
    door.stdin.write(json.dumps({"jsonrpc": "2.0", **about}).encode() + b"\\n")
door.stdin.flush()
answers = (json.loads(line) for line in door.stdout)
print(next(each["result"]["content"][0]["text"] for each in answers if each.get("id") == 2))
door.stdin.close()
door.wait()
"""
"""A client that asks the permission prompt tool about a call of a server with our name."""


@pytest.mark.parametrize(
    ("option", "is_ours"),
    [
        (["--permission-prompt-tool", "mcp__handrail__approve"], True),
        (["--permission-prompt-tool=mcp__handrail__approve"], True),
        (["--permission-prompt-tool", "mcp__guard__approve"], False),
        ([], False),
    ],
)
async def test_the_permission_prompt_tool_asks_about_a_server_that_only_has_our_name(
    shared_home: Home, shared_person: Person, workspace: Path, option: list[str], *, is_ours: bool
) -> None:
    person, before = shared_person, len(await shared_person.get("calls"))
    with start_client(shared_home, PROMPTING, str(workspace), f"toolu_{option}", *option) as client:
        if not is_ours:
            asked = await person.question("handrail: execute_command")
            assert "Handrail's name" in asked["claims"][-1]["opaque"]
            await person.deny("handrail: execute_command", "who is this?")
        told, _ = await anyio.to_thread.run_sync(lambda: client.communicate(timeout=BOUND))
    decided = json.loads(told)
    assert (decided["behavior"] == "allow") == is_ours, decided
    assert len(await person.get("calls")) == before + (not is_ours)


GREETING = """
from handrail.door.connect import HelloRefused, connect, say_hello
from handrail.paths import Places
try:
    say_hello(connect(Places.find(), start=False), "person")
    print("person")
except HelloRefused as refused:
    print(refused.why)
"""
CLIENT = """
import subprocess, sys
greet, sent, *hook = sys.argv[1:]
subprocess.run([sys.executable, "-c", greet])
subprocess.run(hook, input=sent.encode(), stdout=subprocess.DEVNULL)
subprocess.run([sys.executable, "-c", greet])
"""


async def test_what_a_client_starts_is_no_person_once_its_hook_has_run(home: Home, workspace: Path) -> None:
    sent = json.dumps(payload(workspace, "TodoWrite", {"todos": []}))
    ended = await anyio.run_process(
        [sys.executable, "-c", CLIENT, GREETING, sent, *command_line(["claude"])],
        env=home.environment,
        start_new_session=True,
    )
    before, after = ended.stdout.decode().splitlines()
    assert before == "person"
    assert "an agent's process tree" in after
