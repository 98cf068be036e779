"""Our own agent as a person has it: one command, with a model that does what a script says, and everything else real.

The model is reached over HTTP by the address in a variable, as any other would be.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.daemon_home import BOUND, Home, eventually, running_daemon
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import ModelServer, model_server
from tests.support.person_client import Json, Person, person_of
from tests.support.relayed_servers import section
from tests.support.thread_client import parts_of, text_of

from handrail.config import PROVIDER_VARIABLES

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

KEY = "sk-of-somebody-4711-0815"
BROKEN = "def double(number):\n    return number + number + 1\n"
TEST = "from sums import double\n\nassert double(21) == 42, double(21)\nprint('the test is happy')\n"
NOBODY_SERVES = '[[agents]]\nname = "handrail"\nenv = { OLLAMA_BASE_URL = "http://127.0.0.1:9/v1" }\n'
"""So that a model which happens to run on this machine is not found."""
RUN = f"{sys.executable} test_sums.py"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as server:
        server.key = KEY
        yield server
        assert server.refused == []


@contextmanager
def without_keys(config: str = "") -> Generator[Home]:
    """A daemon that has no key from anywhere but from here."""
    with pytest.MonkeyPatch.context() as patched:
        for name in (*PROVIDER_VARIABLES, "DBUS_SESSION_BUS_ADDRESS"):
            patched.delenv(name, raising=False)
        with running_daemon(config) as home:
            yield home


@dataclass(frozen=True, slots=True)
class Chatted:
    """What a person had of `handrail chat`."""

    code: int
    out: str
    err: str

    @property
    def updates(self) -> list[Json]:
        return [json.loads(line) for line in self.out.splitlines()]


Work = Callable[[], Coroutine[Any, Any, object]]


async def chat(
    home: Home, folder: Path, *words: str, env: Mapping[str, str] | None = None, meanwhile: Work | None = None
) -> Chatted:
    """One command, and what a person does elsewhere while it runs."""
    command = [sys.executable, "-m", "handrail", "chat", *words]
    given = {**home.environment, **(env or {})}
    ended: list[subprocess.CompletedProcess[bytes]] = []

    async def run() -> None:
        none = subprocess.DEVNULL
        ended.append(await anyio.run_process(command, cwd=folder, env=given, check=False, stdin=none))

    with anyio.fail_after(2 * BOUND):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            if meanwhile is not None:
                group.start_soon(meanwhile)
    [done] = ended
    assert b"Traceback" not in done.stderr, done.stderr
    return Chatted(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """For the tests that leave it as it is."""
    with without_keys(NOBODY_SERVES) as made:
        yield made


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


@pytest.fixture
def project(workspace: Path) -> Path:
    """Something to mend, with the test that says so."""
    (workspace / "sums.py").write_text(BROKEN)
    (workspace / "test_sums.py").write_text(TEST)
    return workspace


def anthropic(model: ModelServer) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url}


def openai(model: ModelServer) -> dict[str, str]:
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{model.url}/v1"}


MENDING = script(
    Turn("Let me see.", "read_file", {"path": "sums.py"}, think="It is off by one, I suppose."),
    Turn("", "edit_file", {"path": "sums.py", "old_string": " + 1", "new_string": ""}),
    Turn("Now its test.", "execute_command", {"command": RUN}),
    Turn("It doubles again, and its test is happy."),
    prompt="Make the test of sums.py pass.",
)


@pytest.mark.parametrize("provider", [anthropic, openai])
async def test_one_command_edits_a_file_through_diff_review_and_runs_its_test(
    provider: Callable[[ModelServer], dict[str, str]],
    home: Home,
    person: Person,
    model: ModelServer,
    project: Path,
) -> None:
    reviewed: list[Json] = []

    async def review() -> None:
        """A person looks at the change, allows it, and lets the test run."""
        asked = await person.question("sums.py")
        reviewed.append((await person.get(f"approvals/{asked['id']}"))["preview"])
        assert (project / "sums.py").read_text() == BROKEN  # nothing is written before
        (await person.answer(asked, "allow")).raise_for_status()
        await person.allow("test_sums.py")

    said = ("--agent", "handrail", MENDING)
    told = await chat(home, project, *said, env=provider(model), meanwhile=review)

    assert (told.code, told.out.rstrip().splitlines()[-1]) == (0, "It doubles again, and its test is happy.")
    assert (project / "sums.py").read_text() == BROKEN.replace(" + 1", "")
    [diff] = reviewed
    assert diff["kind"] == "diff"
    assert "-    return number + number + 1\n+    return number + number\n" in diff["diff"]
    calls = await calls_in(person, project)
    assert [(call["tool"], call["status"]) for call in reversed(calls)] == [
        ("read_file", "done"),
        ("edit_file", "done"),
        ("execute_command", "done"),
    ]
    last = await person.call(calls[0]["id"])
    assert last["result"]["data"]["exit_code"] == 0
    assert "the test is happy" in last["result"]["data"]["output"]
    assert len(model.asked) == 4


async def test_a_tool_of_another_mcp_server_is_offered_asked_about_and_answers_the_model(
    workspace: Path, model: ModelServer, tmp_path: Path
) -> None:
    adding = script(Turn("", "sums__add", {"a": 19, "b": 23}), Turn("It is added."))
    asked: list[Json] = []
    with without_keys(NOBODY_SERVES + section("sums", tmp_path / "sums")) as home:
        person = person_of(home)

        async def allow() -> None:
            question = await person.question("sums add")
            asked.append({**question, "call": await person.call(question["call_id"])})
            (await person.answer(question, "allow")).raise_for_status()

        told = await chat(
            home, workspace, "--agent", "handrail", adding, env=anthropic(model), meanwhile=allow
        )
        [call] = await calls_in(person, workspace)

    first, second = (request.body for request in model.asked)
    assert (told.code, told.out.rstrip().splitlines()[-1]) == (0, "It is added.")
    assert "sums__add" in [tool["name"] for tool in first["tools"]]
    [question] = asked
    assert any("sums" in reason for reason in question["reasons"])
    assert (question["call"]["status"], question["call"]["assurance"]) == ("waiting", "forwarded")
    assert (call["tool"], call["status"]) == ("sums__add", "done")
    [result] = [block for block in second["messages"][-1]["content"] if block["type"] == "tool_result"]
    assert "42" in json.dumps(result["content"])


async def test_without_any_key_a_sentence_says_every_way_to_give_one(home: Home, workspace: Path) -> None:
    told = await chat(home, workspace, "--agent", "handrail", "Hello?")
    assert told.code == 1
    assert "It failed." in told.err
    for way in (
        "ANTHROPIC_API_KEY",
        "handrail chat",
        "handrail up",
        "[[agents]]",
        "`handrail keys set ",
        "OLLAMA",
    ):
        assert way in told.out


async def test_a_key_of_the_chat_s_environment_reaches_its_thread_and_nothing_else(
    workspace: Path, model: ModelServer
) -> None:
    looking = script(Turn("I look.", "execute_command", {"command": "env"}), Turn("I have looked."))
    with without_keys(NOBODY_SERVES) as home:
        person = person_of(home)
        allow = partial(person.allow, "env")
        told = await chat(home, workspace, "--json", looking, env=anthropic(model), meanwhile=allow)
        assert (told.code, told.updates[-1]["stop_reason"]) == (0, "end_turn")
        assert [KEY in " ".join(request.headers.values()) for request in model.asked] == [True, True]

        # What is said next in that thread has it still; in another it was never there.
        again = await answered(person, told.updates[-1]["thread"], script(Turn("Still here.")))
        assert (again["stop"], text_of(again)) == ("end_turn", "Still here.")
        other = await person.post("threads", {"workspace": str(workspace), "agent": "handrail"})
        without = await answered(person, other["id"], "Hello?")
        assert without["stop"] == "failed"
        assert "There is no key" in parts_of(without, "error")[0]["text"]
        assert len(model.asked) == 3

        [call] = await person.get("calls")
        printed = (await person.call(call["id"]))["result"]["data"]["output"]
        assert "HANDRAIL" in printed or "PATH=" in printed
        assert not any(name in printed for name in PROVIDER_VARIABLES)
        home.end()  # everything is on disk
        assert KEY not in told.out + told.err
        assert [path for path in home.places.data.rglob("*") if holds(path, KEY)] == []


@pytest.mark.parametrize("where", ["config", "daemon"])
async def test_a_key_of_the_configuration_or_of_the_daemon_serves_every_thread(
    where: str, workspace: Path, model: ModelServer
) -> None:
    given = openai(model)
    set_here = f'[[agents]]\nname = "handrail"\nenv = {toml(given)}\n'
    with without_keys(set_here if where == "config" else "") as home:
        if where == "daemon":
            home.end()
            home.environment |= given
            home.up()
        told = await chat(home, workspace, "--agent", "handrail", script(Turn("I am here.")))
    assert (told.code, told.out) == (0, "I am here.\n")
    assert model.asked[0].headers["authorization"] == f"Bearer {KEY}"


async def test_who_has_a_key_and_has_talked_to_nobody_yet_talks_to_our_own_agent(
    workspace: Path, model: ModelServer
) -> None:
    with without_keys(NOBODY_SERVES) as home:
        person = person_of(home)
        assert (await chat(home, workspace, "--agent", "demo", "--new", "hello")).code == 0
        told = await chat(home, workspace, "--new", script(Turn("It is me.")), env=anthropic(model))
        assert (told.code, told.out) == (0, "It is me.\n")
        assert [thread["agent"] for thread in await person.get("threads")][:2] == ["handrail", "demo"]


async def test_a_program_is_told_of_everything_that_begins_and_ends(
    home: Home, workspace: Path, model: ModelServer
) -> None:
    (workspace / "a.txt").write_text("a")
    prompt = script(Turn("", "read_file", {"path": "a.txt"}, think="Hm."), Turn("Read."))
    told = await chat(home, workspace, "--agent", "handrail", "--json", prompt, env=anthropic(model))
    activities = [each for each in told.updates if each.get("update") == "activity"]
    began = {each["activity"]: each for each in activities if each["kind"] == "ActivityStarted"}
    ended = {each["activity"]: each["how"] for each in activities if each["kind"] == "ActivityEnded"}
    assert ended == dict.fromkeys(began, "done")
    assert [each["sort"] for each in began.values()] == [
        *("operation", "step", "model", "thinking", "call"),
        *("step", "model"),
    ]
    [call] = [each for each in began.values() if each["sort"] == "call"]
    assert (call["title"], began[call["parent"]]["title"]) == ("Read a.txt", "Step 1")
    assert told.updates[-1]["stop_reason"] == "end_turn"


async def calls_in(person: Person, folder: Path) -> list[Json]:
    """Newest first."""
    every: list[Json] = await person.get("calls")
    return [call for call in every if call["caller"]["workspace"] == str(folder)]


async def answered(person: Person, thread: str, words: str) -> Json:
    """The answer to a prompt that a program sends, once it has ended."""
    prompted = await person.post(f"threads/{thread}/prompt", {"text": words})

    async def look() -> Json | None:
        said: list[Json] = (await person.get(f"threads/{thread}"))["said"]
        ends = (each for each in said if each["operation"] == prompted["operation"] and each["ended_at"])
        return next((each for each in ends if each["role"] == "assistant"), None)

    return await eventually(look)


def toml(values: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items()) + " }"


def holds(path: Path, words: str) -> bool:
    return path.is_file() and words.encode() in path.read_bytes()
