"""Keys that a person gives our own agent for one thread: it thinks with them, and nobody and nothing else has them.

The agent is the real one, hosted by a real daemon of an ordinary user; its model is a server on loopback that takes no
other key. What it is made to run looks everywhere a process of that user can look.
"""

import json
import os
import secrets
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import ModelServer, model_server
from tests.support.user_account import Account, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

LOOK = r"""
import json, os, sys
found, denied, files = {}, [], {}
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if os.stat(f"/proc/{pid}").st_uid in (0, os.getuid()) or os.getuid() == 0:
            with open(f"/proc/{pid}/environ", "rb") as file:
                found[pid] = file.read().decode(errors="replace")
    except OSError:
        denied.append(int(pid))
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                files[name] = file.read(10_000_000).decode(errors="replace")
        except OSError:
            pass
with open("loot.part", "w") as file:
    json.dump({"own": dict(os.environ), "environs": found, "denied": denied, "files": files}, file)
os.rename("loot.part", "loot.json")
"""


@dataclass
class Story:
    """One prompt with a key, what came of it, and what a command found meanwhile."""

    account: Account
    key: str
    agents: set[int]
    """The pids of our agent's programs: the one that answered, and a spare one for the next thread."""
    environ: str
    """What whoever may look at everything sees in their environments."""
    said: str
    loot: dict[str, Any]
    wire: str
    """All that people's programs are told: the journal, the thread, its operation."""


@pytest.fixture(scope="module")
def story(new_account: Callable[..., Account]) -> Generator[Story]:
    key = f"sk-{secrets.token_hex(24)}"
    account = new_account()
    with model_server() as model, account.in_the_foreground():
        model.key = key
        yield told(account, model, key)


def told(account: Account, model: ModelServer, key: str) -> Story:
    account.trust()
    person = account.sign_in()
    look = account.write(account.workspace / "look.py", LOOK)
    line = f"{account.python} {look} {account.root}"
    body = {"workspace": str(account.workspace), "agent": "handrail"}
    thread = account.http("POST", "/api/threads", person, body).json["id"]
    env = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": model.url, "HANDRAIL_MODEL": "anthropic:scripted"}
    turns = Turn(tool="execute_command", input={"command": line}), Turn("All done.")
    prompt = {"text": script(*turns), "env": env}
    with allowing(account, person):
        prompted = account.http("POST", f"/api/threads/{thread}/prompt", person, prompt)
        assert prompted.status == 200, prompted.body
        said = until(lambda: answer(account, person, thread), "the agent has answered")
    agents = {pid for pid in account.processes() if is_agent(pid)}
    paths = (
        "/api/events",
        f"/api/threads/{thread}",
        f"/api/operations/{prompted.json['operation']}",
        "/api/agents",
    )
    wire = b"".join(account.http("GET", path, person).body for path in (*paths, "/api/state", "/api/calls"))
    return Story(
        account=account,
        key=key,
        agents=agents,
        environ="".join(Path(f"/proc/{pid}/environ").read_text() for pid in agents if os.getuid() == 0),
        said=said,
        loot=json.loads((account.workspace / "loot.json").read_text()),
        wire=wire.decode(),
    )


@contextmanager
def allowing(account: Account, person: str) -> Generator[None]:
    """A person who says yes to whatever is asked."""
    over = threading.Event()

    def say_yes() -> None:
        while not over.wait(0.05):
            for row in account.http("GET", "/api/approvals?open=true", person).json:
                account.allow(row["call_id"], person)

    yes = threading.Thread(target=say_yes)
    yes.start()
    try:
        yield
    finally:
        over.set()
        yes.join()


def answer(account: Account, person: str, thread: str) -> str:
    said = account.http("GET", f"/api/threads/{thread}", person).json["said"]
    ended = [each for each in said if each["role"] == "assistant" and each["ended_at"] is not None]
    return " ".join([part["text"] for each in ended for part in each["parts"]] + ["" for _ in ended])


def is_agent(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"-m\0handrail\0agent\0")


def test_the_agent_thinks_with_the_key_that_came_with_the_prompt(story: Story) -> None:
    """The control: it does have it, and the model would have refused any other."""
    assert "All done." in story.said


def test_its_environment_never_held_it(story: Story) -> None:
    """So that nothing is there to be read, not even in the moment before it hides its memory."""
    if os.getuid() == 0:
        assert "HANDRAIL_HOME=" in story.environ
    assert story.key not in story.environ


def test_no_command_has_it_in_its_environment(story: Story) -> None:
    assert story.loot["own"]["HOME"]
    assert story.key not in json.dumps(story.loot["own"])
    assert "ANTHROPIC_API_KEY" not in story.loot["own"]


def test_the_agents_environment_cannot_be_read_by_what_it_runs(story: Story) -> None:
    environs: dict[str, str] = story.loot["environs"]
    assert story.agents & set(story.loot["denied"])  # a spare one may have started since
    assert story.agents.isdisjoint(map(int, environs))
    assert environs, "the control: there are environments that can be read, its own for one"
    assert story.key not in json.dumps(environs)


def test_no_file_that_a_command_can_read_holds_it(story: Story) -> None:
    assert "handrail.db" in story.loot["files"], "the control: it did read our files"
    assert story.key not in json.dumps(story.loot["files"])


def test_nothing_that_people_are_told_holds_it(story: Story) -> None:
    assert "All done." in story.wire
    assert story.key not in story.wire


def test_no_file_at_all_holds_it_while_it_is_used_and_when_all_is_over(story: Story) -> None:
    assert holding(story.account.root, story.key) == []
    assert story.account.handrail("down").returncode == 0
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in story.agents), "the agents are gone")
    assert holding(story.account.root, story.key) == []
    assert holding(story.account.root, "All done."), "the control: what was said is there"


def holding(root: Path, words: str) -> list[Path]:
    """The files that hold these words."""
    found = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in found if words.encode() in path.read_bytes()]


def test_keys_of_the_shell_in_which_handrail_was_started_serve_our_agent_and_nobody_else(
    new_account: Callable[..., Account],
) -> None:
    key = f"sk-{secrets.token_hex(24)}"
    with model_server() as model:
        model.key = key
        env = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": model.url, "FAKE_API_KEY": "sk-other"}
        account = new_account(environment={**env, "HANDRAIL_MODEL": "anthropic:scripted"})
        assert account.handrail("up", "--no-open").returncode == 0
        person = account.sign_in()
        begun = account.http("POST", "/api/threads", person, {"workspace": str(account.workspace)}).json
        assert begun["agent"] == "handrail", "who has a key for it talks to it, unless they say otherwise"
        prompt = {"text": script(Turn("All done."))}
        prompted = account.http("POST", f"/api/threads/{begun['id']}/prompt", person, prompt)
        assert prompted.status == 200, prompted.body
        said = until(lambda: answer(account, person, begun["id"]), "the agent has answered")
    assert "All done." in said
    if os.getuid() == 0:
        around = {pid: Path(f"/proc/{pid}/environ").read_text() for pid in account.processes()}
        assert [pid for pid, environ in around.items() if key in environ] == [account.pid]
        assert not any("sk-other" in environ for environ in around.values())
    assert holding(account.root, key) == []
