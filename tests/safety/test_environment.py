"""Secrets in the daemon's environment reach no child, unless a person has said that they should."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.safety.conftest import LIBRARY
from tests.support.user_account import CONFIG, Account, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

SECRETS = {
    "FAKE_API_KEY": "sk-marked-secret",
    "ANTHROPIC_API_KEY": "sk-marked-for-our-agent",
    "OPENAI_BASE_URL": "http://127.0.0.1:1/marked",
    "AWS_SECRET_ACCESS_KEY": "marked-too",
    "LD_LIBRARY_PATH": "/marked",
}


@pytest.fixture
def account(new_account: Callable[..., Account]) -> Account:
    return new_account(environment=SECRETS)


def environment(account: Account) -> str:
    """What a command, its warden's other children and their /proc show."""
    with account.in_the_foreground():
        bearer, person = account.credential(), account.sign_in()
        line = "env; tr '\\0' '\\n' < /proc/self/environ"
        call = account.call(bearer, "execute_command", command=line, wait_seconds=0)["call_id"]
        account.allow(call, person)
        return until(lambda: output_of(account, call, person), "the command is done")


def output_of(account: Account, call: str, person: str) -> str:
    result = account.http("GET", f"/api/calls/{call}", person).json["result"]
    return result["data"]["output"] if result else ""


def test_secrets_of_the_daemons_environment_reach_no_command(account: Account) -> None:
    told = environment(account)
    assert "HOME=" in told
    for name, value in SECRETS.items():
        assert name not in told
        assert value not in told


def test_a_variable_that_a_person_names_is_passed_on_and_no_other(account: Account) -> None:
    """The control: the daemon does have them."""
    account.write(account.home / "config.toml", CONFIG + 'env_pass = ["FAKE_API_KEY"]\n')
    told = environment(account)
    assert f"FAKE_API_KEY={SECRETS['FAKE_API_KEY']}" in told
    assert "AWS_SECRET_ACCESS_KEY" not in told


PLANTED = """
import os, sys
with open(os.path.join(os.path.dirname(__file__), "loaded"), "a") as file:
    file.write(f"{os.getpid()}\\n")
"""
ASK_KEEPER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as keeper:
    keeper.connect(sys.argv[1])
    keeper.sendall(b'{"is": "hello", "protocol": 1, "want": "start_daemon"}\\n')
    print(keeper.recv(4096))
"""


def test_a_daemon_that_the_keeper_starts_loads_no_module_that_a_variable_names(
    new_account: Callable[..., Account],
) -> None:
    """A person's PYTHONPATH often names a folder of a project, in which an agent may write."""
    account = new_account()
    library = account.root / "lib"
    library.mkdir()
    library.chmod(0o777)
    account.environment = {"PYTHONPATH": str(library)}
    with account.in_the_foreground():
        before = account.pid
        account.write(library / "sitecustomize.py", PLANTED)
        os.kill(before, signal.SIGKILL)
        (account.home / "daemon.json").unlink()

        def start() -> bool:
            done = account.run(account.python, "-c", ASK_KEEPER, str(account.home / "keeper.sock"))
            return "started" in done.stdout

        until(start, "the keeper starts a daemon")
        after = until(lambda: account.about.get("pid"), "the daemon writes where it is")
    loaded = (library / "loaded").read_text().split()
    assert loaded  # by the process that asked the keeper, which is the control
    assert str(after) not in loaded


def test_no_code_is_loaded_from_a_keyring_that_a_command_has_configured(
    new_account: Callable[..., Account],
) -> None:
    """`keyring` reads a file of the user's that may name any module. Any process may ask for the list of keys."""
    account = new_account()
    account.start()
    folder = account.root / ".config/python_keyring"
    assert account.run("mkdir", "-p", str(folder)).returncode == 0
    account.write(folder / "planted.py", PLANTED)
    account.write(
        folder / "keyringrc.cfg", f"[backend]\ndefault-keyring = planted.Keyring\nkeyring-path = {folder}\n"
    )
    person = account.sign_in()
    asked = account.http("GET", "/api/keys", person)
    stored = account.http("PUT", "/api/secrets/TOKEN", person, {"value": "of-a-server"})
    listed = account.handrail("keys")
    assert not (folder / "loaded").exists()
    assert (asked.status, stored.status, listed.returncode) == (200, 204, 0)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make an installation that the user cannot write")
def test_doctor_tells_an_ordinary_user_which_part_of_the_installation_they_can_write(
    account: Account,
) -> None:
    part = Path(account.python).parent.parent / LIBRARY / "site-packages/handrail/door/proxy.py"
    mode = part.stat().st_mode
    assert "✓ ok   install" in account.handrail("doctor").stdout
    part.chmod(0o666)
    try:
        told = account.handrail("doctor").stdout
    finally:
        part.chmod(mode)
    assert f"Your user can write {part}, so an approved command can change Handrail's own code." in told
    assert "handrail doctor --harden" in told
