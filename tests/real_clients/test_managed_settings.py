"""Claude Code's managed settings, which `connect claude --locked` writes: no project and no option switches their hooks off.

They are below /etc, for every user of the machine. So each program runs in a mount namespace of its own, which has a copy in
the place of /etc: whatever a test leaves there, the machine does not get.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.real_agents.hosting import answering
from tests.real_clients.client_catalog import CLAUDE
from tests.real_clients.guarded_client import GuardedClient, guarded_client

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.getuid() != 0, reason="only root writes managed settings, and mounts"),
]

OFF = json.dumps({"disableAllHooks": True})
IN_PROJECT = Path(".claude", "settings.json")
OPTIONS = (
    ("--settings", OFF),
    ("--setting-sources", "project"),
    ("--bare",),
    ("--safe-mode",),
)
"""Each switches off the hooks of the user's own settings."""


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedClient]:
    """Claude with hooks in its managed settings alone, in a project that switches hooks off, as does its user."""
    etc = tmp_path_factory.mktemp("machine") / "etc"
    shutil.copytree("/etc", etc, symlinks=True, ignore=_special_files)
    with guarded_client(CLAUDE, wrapper=_with_etc(etc)) as guarded:
        before = _files(etc)
        _switch_off(guarded)
        home = guarded.files()
        done = guarded.handrail("connect", "claude", "--locked", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        assert guarded.files() == home
        assert _files(etc).keys() - before.keys() == {"claude-code/managed-settings.json"}
        yield guarded
        done = guarded.handrail("connect", "claude", "--locked", "--undo", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        assert _files(etc) == before
        assert not (etc / "claude-code").exists()


def _with_etc(folder: Path) -> tuple[str, ...]:
    """Starts a program that sees this folder as /etc, and the rest of the machine as it is."""
    mount = 'mount --bind "$0" /etc && exec "$@"'
    return ("unshare", "--mount", "sh", "-c", mount, str(folder))


def _special_files(folder: str, names: list[str]) -> list[str]:
    paths = (Path(folder, name) for name in names)
    return [path.name for path in paths if not (path.is_symlink() or path.is_dir() or path.is_file())]


def _files(folder: Path) -> Mapping[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _switch_off(guarded: GuardedClient) -> None:
    """The user's own settings and those of the project, as far as they can."""
    for path in (guarded.workspace / IN_PROJECT, guarded.user_home / ".claude" / "settings.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(OFF)


async def test_hooks_of_the_user_are_off_in_a_project_that_disables_them() -> None:
    """What the managed settings are for; without this the test below would prove nothing."""
    with guarded_client(CLAUDE) as guarded:
        assert guarded.handrail("connect", "claude", "--yes").returncode == 0
        settings = guarded.workspace / IN_PROJECT
        settings.parent.mkdir()
        settings.write_text(OFF)
        run = await guarded.run(CLAUDE.runs("touch unasked"), arguments=CLAUDE.asks_nobody)
        assert (guarded.workspace / "unasked").exists(), run.text
        assert await guarded.calls() == []


async def test_managed_hooks_stay_when_the_project_and_the_user_disable_hooks(locked: GuardedClient) -> None:
    await _deny_one(locked, "denied")
    async with answering(locked.person, "allow") as asked:
        run = await locked.run(CLAUDE.runs("touch allowed"), arguments=CLAUDE.asks_nobody)
    assert (locked.workspace / "allowed").exists(), run.text
    assert len(asked) == 1


@pytest.mark.all_clients
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
async def test_managed_hooks_stay_whatever_the_options_say(
    locked: GuardedClient, options: tuple[str, ...]
) -> None:
    await _deny_one(locked, f"with{OPTIONS.index(options)}", *options)


async def _deny_one(locked: GuardedClient, name: str, *options: str) -> None:
    async with locked.running(CLAUDE.runs(f"touch {name}"), arguments=(*options, *CLAUDE.asks_nobody)) as run:
        await locked.person.deny(f"touch {name}", f"Not {name}.")
    assert not (locked.workspace / name).exists(), run.text
    assert locked.is_told(f"Not {name}.")
