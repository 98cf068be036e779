"""config.toml changed over the API: text kept, validated, accepted, taken up; never over what somebody else wrote."""

import ctypes
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.daemon_home import BOUND, Home, running_daemon
from tests.support.person_client import Person, person_of

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

CONFIG = """# what I decided in May
[journal] # evidence
keep_days = 90  # three months

[notify]
quiet_hours = "22-7"
"""


@pytest.fixture
def home() -> Generator[Home]:
    with running_daemon(CONFIG) as home:
        yield home


def values_of(view: dict[str, list[dict[str, object]]]) -> dict[str, dict[str, object]]:
    return {str(each["name"]): each for each in view["values"]}


async def change(person: Person, **values: object) -> tuple[int, str]:
    named = {name.replace("__", "."): value for name, value in values.items()}
    answer = await person.ask("PATCH", "settings", {"values": named})
    return answer.status_code, answer.text


async def effect_of(person: Person, command: str) -> str:
    folder = str(person.home.places.data.parent)
    return (await person.post("rules/test", {"command": command, "workspace": folder}))["effect"]


async def test_a_change_keeps_the_rest_of_the_file_is_in_force_and_needs_no_acceptance_later(
    home: Home,
) -> None:
    person = person_of(home)
    file = home.places.config
    before = file.read_text()
    assert await effect_of(person, "make") == "ask"
    status, said = await change(
        person, journal__keep_days=30, default_policy="deny", command__wait_seconds=20
    )
    assert status == 200, said
    text = file.read_text()
    assert text.startswith("# what I decided in May\n")
    assert "[journal] # evidence\nkeep_days = 30" in text
    assert "# three months" in text
    assert set(before.splitlines()) - set(text.splitlines()) == {"keep_days = 90  # three months"}
    assert await effect_of(person, "make") == "deny"
    values = values_of(await person.get("settings"))
    assert (values["default_policy"]["pending"], values["command.wait_seconds"]["pending"]) == (False, True)
    assert values["command.wait_seconds"]["restart"] is True

    home.kill()
    home.up()
    state = await person.get("state")
    assert (state["policy"]["changes"], state["policy"]["suspended"]) == ([], "")
    assert await effect_of(person, "make") == "deny"
    assert values_of(await person.get("settings"))["command.wait_seconds"]["pending"] is False

    # back to the default: the line goes
    assert (await change(person, default_policy=None))[0] == 200
    assert "default_policy" not in file.read_text()
    assert await effect_of(person, "make") == "ask"


async def test_what_somebody_else_wrote_is_not_accepted_with_a_change(home: Home) -> None:
    person = person_of(home)
    file = home.places.config
    status, said = await change(person, journal__keep_days=-1)
    assert (status, "journal.keep_days" in said) == (422, True)
    assert (await change(person, rules=[]))[0] == 422
    assert (await change(person, nonsense="x"))[0] == 422
    file.write_text(f"default_policy = 'allow'\n{file.read_text()}")
    forged = file.read_text()
    status, said = await change(person, journal__keep_days=30)
    assert (status, "has changed since" in said) == (409, True)
    assert file.read_text() == forged
    assert await effect_of(person, "make") == "ask"


async def test_a_secret_is_set_and_never_shown_and_an_agent_is_added_and_removed(home: Home) -> None:
    person = person_of(home)
    address = "https://ntfy.example.org/hush-73310"
    assert (await change(person, notify__ntfy=address))[0] == 200
    view = await person.get("settings")
    assert address not in str(view)
    ntfy = values_of(view)["notify.ntfy"]
    assert (ntfy["default"], ntfy["field"]["secret"]) == (False, True)  # type: ignore[index]
    assert f'ntfy = "{address}"' in home.places.config.read_text()

    entry = {"name": "mine", "command": ["/bin/false", "--acp"], "env_pass": ["MY_KEY"]}
    added = await person.post("settings/agents", entry)
    assert [each["name"] for each in values_of(added)["agents"]["value"]] == ["mine"]  # type: ignore[index, union-attr]
    assert (await person.ask("POST", "settings/agents", entry)).status_code == 422
    removed = (await person.ask("DELETE", "settings/agents/mine")).json()
    assert values_of(removed)["agents"]["value"] == []
    assert (await person.ask("DELETE", "settings/agents/mine")).status_code == 404


IN_CLOSE_NOWRITE = 0x10


@contextmanager
def written_after_the_first_read(file: Path, text: str) -> Generator[None]:
    """Another program that puts this text in place of a file, as soon as a process has read it."""
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init()
    assert libc.inotify_add_watch(watch, bytes(file), IN_CLOSE_NOWRITE) > 0
    other = file.with_name("other.toml")
    other.write_text(text)

    def switch() -> None:
        os.read(watch, 4096)
        other.replace(file)

    thread = threading.Thread(target=switch)
    thread.start()
    try:
        yield
    finally:
        thread.join(BOUND)
        os.close(watch)


@pytest.mark.skipif(sys.platform != "linux", reason="needs inotify")
async def test_a_line_that_another_program_writes_in_the_same_moment_is_never_accepted() -> None:
    """A command could wait for the person to change any setting, and have its own accepted with it."""
    rules = "".join(f'[[rules]]\neffect = "ask"\ncommand = "tool-{number}"\n' for number in range(300))
    with running_daemon(CONFIG + rules) as home:  # a file that takes milliseconds to understand
        person, file = person_of(home), home.places.config
        forged = f"default_policy = 'allow'\n{file.read_text()}"
        with written_after_the_first_read(file, forged):
            status, said = await change(person, notify__quiet_hours="22-8")
        assert (status, "has changed since" in said) == (409, True)
        assert file.read_text() == forged
        assert "default_policy" not in str(await person.get("events", after=0))
        assert await effect_of(person, "make") == "ask"
