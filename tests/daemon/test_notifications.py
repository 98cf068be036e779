"""A question that no page shows is told on the desktop: once, exactly, and by a program that can do no more."""

import json
import os
import resource
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.daemon_home import BOUND
from tests.support.gate_world import Client, GateWorld, caller, gate_world, make_answer
from tests.support.sample_tools import Write

from handrail.config import NotifySection
from handrail.daemon.notifications import LONGEST, Notifier, build_notification, escape_hidden
from handrail.gate import person_actions
from handrail.server.client_sessions import ClientNotice

pytestmark = pytest.mark.anyio

GRACE = 0.3
"""Long enough for a few questions to be asked at once, on a busy machine too."""
PROGRAM = """#!{python} -I
import json, os, resource, sys, time
said = {{
    "argv": sys.argv[1:], "environment": dict(os.environ),
    "limit": resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1],
}}
with open({pipe!r}, "w") as pipe:
    pipe.write(json.dumps(said))
{then}
"""


@dataclass
class Desktop:
    """A desktop's program, and what it was told."""

    folder: Path
    pages: int = 0
    looked: anyio.Event = field(default_factory=anyio.Event)
    """Somebody wanted to know how many pages there are."""

    def count(self) -> int:
        self.looked.set()
        return self.pages

    def install(self, name: str = "notify-send", then: str = "") -> None:
        os.mkfifo(self._pipe)
        program = self.folder / name
        program.write_text(PROGRAM.format(python=sys.executable, pipe=str(self._pipe), then=then))
        program.chmod(0o755)

    async def said(self) -> dict[str, Any]:
        """What it is told next."""
        return json.loads(await anyio.to_thread.run_sync(self._pipe.read_text, abandon_on_cancel=True))

    @property
    def _pipe(self) -> Path:
        return self.folder / "pipe"

    @property
    def environment(self) -> dict[str, str]:
        names = {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "DISPLAY": ":7", "XDG_RUNTIME_DIR": "/run/x"}
        return {**names, "PATH": str(self.folder), "SECRET": "s3cret"}

    def find(self, name: str, search_path: str) -> str | None:
        """The path of a program on this desktop."""
        return shutil.which(name, path=search_path)


@pytest.fixture
def desktop(tmp_path: Path) -> Desktop:
    folder = tmp_path / "bin"
    folder.mkdir()
    return Desktop(folder)


@asynccontextmanager
async def told_by(path: Path, desktop: Desktop, **how: Any) -> AsyncGenerator[GateWorld]:
    async with gate_world(path, Write()) as here, anyio.create_task_group() as group:
        pace: dict[str, Any] = {"grace": GRACE, "burst": 0.0, "bound": BOUND, "find": desktop.find, **how}
        notifier = Notifier(here.gate, desktop.count, desktop.environment, **pace)
        group.start_soon(notifier.run)
        await anyio.wait_all_tasks_blocked()
        yield here
        group.cancel_scope.cancel()


async def asked(here: GateWorld, *words: str, client: str = "claude") -> list[Client]:
    """Questions, one after the other, each on record."""
    clients = [here.client("write", {"word": word}, caller=caller(client)) for word in words]
    for each in clients:
        await here.question(await each.call())
    return clients


async def test_a_question_that_no_page_shows_is_told_with_what_to_run(
    tmp_path: Path, desktop: Desktop
) -> None:
    desktop.install()
    async with told_by(tmp_path, desktop) as here:
        await asked(here, "a.txt")
        said = await desktop.said()
    *options, title, body = said["argv"]
    assert options == ["--app-name=Handrail", "--"]
    assert title == "A call needs you"
    assert body.splitlines() == [
        "claude: write a.txt (medium risk)",
        "Answer with `handrail approvals -f`, or on the page: `handrail open`.",
    ]


async def test_it_gets_the_desktops_environment_and_none_of_the_rest(
    tmp_path: Path, desktop: Desktop
) -> None:
    desktop.install()
    async with told_by(tmp_path, desktop) as here:
        await asked(here, "a")
        said = await desktop.said()
    kept = {name: value for name, value in desktop.environment.items() if name not in ("PATH", "SECRET")}
    assert said["environment"].items() >= kept.items()
    assert set(said["environment"]) - set(kept) <= {"LC_CTYPE"}


@pytest.mark.skipif(sys.platform != "linux", reason="there is no mark elsewhere")
async def test_what_it_starts_cannot_pass_for_a_person(tmp_path: Path, desktop: Desktop) -> None:
    desktop.install()
    async with told_by(tmp_path, desktop) as here:
        await asked(here, "a")
        said = await desktop.said()
    assert 0 <= said["limit"] < resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1] % (1 << 63)


async def test_a_burst_is_told_of_once(tmp_path: Path, desktop: Desktop) -> None:
    desktop.install()
    async with told_by(tmp_path, desktop) as here:
        await asked(here, "a", "b", "c", "d", "e")
        first = await desktop.said()
        await asked(here, "f")
        second = await desktop.said()
    assert first["argv"][-2] == "5 calls need you"
    assert first["argv"][-1].splitlines()[3] == "and 2 more"
    assert second["argv"][-2] == "A call needs you", "what was told is not told again"
    assert "write f" in second["argv"][-1]


async def test_what_a_page_shows_or_somebody_answered_is_not_told(tmp_path: Path, desktop: Desktop) -> None:
    desktop.install()
    desktop.pages = 1
    async with told_by(tmp_path, desktop) as here:
        await asked(here, "shown")
        await desktop.looked.wait()
        desktop.pages = 0
        (client,) = await asked(here, "answered")
        approval = (await client.call()).approval
        assert approval is not None
        await person_actions.answer(here.gate, approval, make_answer("deny"), approval.digest)
        await asked(here, "told")
        said = await desktop.said()
    assert said["argv"][-2] == "A call needs you"
    assert "write told" in said["argv"][-1]


async def test_without_the_program_nothing_breaks(tmp_path: Path, desktop: Desktop) -> None:
    async with told_by(tmp_path, desktop, grace=0.0) as here:
        for word in ("a", "b"):
            (client,) = await asked(here, word)
            await anyio.wait_all_tasks_blocked()
            person_actions.cancel(here.gate, await client.call(), ANN)
        desktop.install()
        await asked(here, "c")
        assert "write c" in (await desktop.said())["argv"][-1], (
            "it goes on, and finds what was installed since"
        )


@pytest.mark.parametrize("content", ["#!/nowhere/at/all\n", "\x00\x01not a program"])
async def test_a_program_that_cannot_be_run_breaks_nothing(
    tmp_path: Path, desktop: Desktop, content: str
) -> None:
    broken = desktop.folder / "notify-send"
    broken.write_text(content)
    broken.chmod(0o755)
    async with told_by(tmp_path, desktop, grace=0.0) as here:
        await asked(here, "a")
        await desktop.looked.wait()
        broken.rename(broken.with_name("other"))
        desktop.install()
        await asked(here, "b")
        while "write b" not in (await desktop.said())["argv"][-1]:
            continue  # it was mended in time for the first one


async def test_a_program_that_hangs_is_ended_and_the_next_question_is_told(
    tmp_path: Path, desktop: Desktop
) -> None:
    desktop.install(then="time.sleep(1000)")
    async with told_by(tmp_path, desktop, grace=0.0, bound=2.0) as here:
        await asked(here, "a")
        assert "write a" in (await desktop.said())["argv"][-1]
        await asked(here, "b")
        assert "write b" in (await desktop.said())["argv"][-1]


async def test_an_agents_text_is_neither_markup_nor_an_option_nor_an_escape(
    tmp_path: Path, desktop: Desktop
) -> None:
    desktop.install()
    async with told_by(tmp_path, desktop) as here:
        await asked(here, "<b>&\\074i\\076\u202e\n--icon=x", client="--help")
        said = await desktop.said()
    assert said["argv"][:3] == ["--app-name=Handrail", "--", "A call needs you"]
    line = said["argv"][-1].splitlines()[0]
    assert line == ("--help: write &lt;b&gt;&amp;\\\\074i\\\\076\\\\u{202e}\\\\u{a}--icon=x (medium risk)")


async def test_on_a_mac_the_words_are_arguments_and_no_part_of_the_script(
    tmp_path: Path, desktop: Desktop
) -> None:
    desktop.install("osascript")
    async with told_by(tmp_path, desktop, system="darwin") as here:
        await asked(here, '" & (do shell script "x") & "')
        argv = (await desktop.said())["argv"]
    assert argv[:6] == [
        *("-e", "on run argv"),
        *("-e", "display notification (item 2 of argv) with title (item 1 of argv)"),
        *("-e", "end run"),
    ]
    assert argv[6] == "A call needs you"
    assert argv[7].startswith('claude: write " & (do shell script "x") & " (')


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain <text>", "plain <text>"),
        ("a\u202eb\u2066c", "a\\u{202e}b\\u{2066}c"),
        ("a\u200bb\u3164c", "a\\u{200b}b\\u{3164}c"),
        ("a\x1b[31m\tb\n", "a\\u{1b}[31m\\u{9}b\\u{a}"),
        ("x" * 1000, "x" * LONGEST + "…"),
        ("\u202e" * 1000, ("\\u{202e}" * LONGEST)[:LONGEST] + "…"),
    ],
)
def test_text_is_shown_exactly_and_short(text: str, shown: str) -> None:
    assert escape_hidden(text) == shown


async def test_the_words_for_one_and_for_many_are_short(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Write()) as here:
        await asked(here, *("x" * 10_000 + str(number) for number in range(50)), client="y" * 100)
        title, body = build_notification(list(here.gate.open.values()))
    assert title == "50 calls need you"
    assert len(body) < 1200


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (NotifySection(), "Codex has finished"),
        (NotifySection(client_stops=False), "Claude Code wants your attention"),
        (NotifySection(client_asks=False), "Codex has finished"),
    ],
)
async def test_clients_that_stop_or_ask_are_told_of_unless_that_is_switched_off(
    tmp_path: Path, desktop: Desktop, settings: NotifySection, told: str
) -> None:
    desktop.install()
    said: dict[str, list[str]] = {}
    async with gate_world(tmp_path, Write()) as here, anyio.create_task_group() as group:
        notifier = Notifier(
            here.gate, desktop.count, desktop.environment, grace=0.0, burst=0.0, find=desktop.find
        )
        asks = ClientNotice(sort="notified", title="Claude Code", folder="/work/shop", message="May\x1b I?")
        notifier.hear(settings, asks)
        notifier.hear(settings, ClientNotice(sort="stopped", title="Codex", folder="/work/api", message=""))
        group.start_soon(notifier.run)
        said |= await desktop.said()
        group.cancel_scope.cancel()
    *_, title, body = said["argv"]
    assert title == told
    assert ("Claude Code in shop: May\\\\u{1b} I?" in body.splitlines()) == settings.client_asks
    assert ("Codex in api" in body.splitlines()) == settings.client_stops
