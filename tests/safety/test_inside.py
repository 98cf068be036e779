"""What a command finds when it looks around: sockets, files, /proc, its own environment, and the routes.

None of it makes a person of it. As the tests beside this one, all of it as an ordinary user.
"""

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from tests.safety.attack import files, keeper, proc
from tests.support.route_table import Target, targets
from tests.support.user_account import Account, Attacker, AttackResult, until

from handrail.keeper.message_framing import name_of
from handrail.keeper.protocol import Request

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

New = Callable[..., Account]


@pytest.fixture(scope="module")
def hostile(new_account: New) -> Attacker:
    return Attacker(new_account(environment={"FAKE_API_KEY": "sk-of-the-person"}))


@pytest.fixture(scope="module")
def loot(hostile: Attacker) -> AttackResult:
    return hostile.attack("directly", [*keeper.TRIES, *proc.TRIES])


@pytest.mark.parametrize("order", keeper.TRIES)
def test_the_keeper_takes_no_order_from_a_command(loot: AttackResult, order: str) -> None:
    got = loot.of(order)
    assert got.code != 0, got.said


def test_there_is_no_order_to_the_keeper_that_was_not_tried() -> None:
    assert {name_of(kind) for kind in get_args(Request)} == keeper.ORDERS.keys()


@pytest.mark.parametrize("look", proc.TRIES)
def test_nothing_of_daemon_keeper_and_warden_can_be_read_or_traced(loot: AttackResult, look: str) -> None:
    got = loot.of(look)
    assert got.code != 0, got.said


def test_a_command_passes_no_limit_and_no_priority_on_to_the_next_one(hostile: Attacker) -> None:
    """The process above a command is used again. Any process of the user can lower its limits and its priority."""
    account = hostile.account
    line = f"{account.python} script.py"
    rule = {"command": line, "workspace": str(account.workspace)}
    assert account.http("POST", "/api/rules", hostile.person, rule).status == 201
    show = "ulimit -a; nice; grep Cpus_allowed_list /proc/self/status\n"
    lower = "prlimit --fsize=0 --nproc=64 --as=1000000000 -p $PPID; renice -n 5 -p $PPID; "
    lower += "chrt -b -p 0 $PPID; taskset -cp 0 $PPID; ionice -c 3 -p $PPID"

    def run(script: str) -> str:
        # The shell becomes the program, so that the process above it is its warden.
        program = f"import os; os.execvp('sh', ['sh', '-c', {script!r}])"
        account.write(account.workspace / "script.py", program)
        done = account.call(hostile.agent, "execute_command", command=line, wait_seconds=30)
        assert "output" in done, done
        return str(done["output"])

    before = run(show)
    lowered = run(f"{lower}; taskset -cp $PPID; ionice -p $PPID; prlimit --fsize -p $PPID")
    after = [run(show) for _ in range(3)]
    assert "idle" in lowered.splitlines()[-3], lowered
    assert re.search(r"FSIZE +.* 0 +0 ", lowered), lowered
    assert after == [before] * 3


def test_there_is_no_socket_that_was_not_attacked(hostile: Attacker) -> None:
    found = {path.name for path in hostile.account.home.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)}
    assert found == {"daemon.sock", "keeper.sock"}


def test_a_command_finds_no_credential_and_no_secret_in_its_environment(
    hostile: Attacker, loot: AttackResult
) -> None:
    # The home is given by the attack itself, which has to find its target; the terminal's id is no secret.
    mine = {"HANDRAIL_HOME", "HANDRAIL_TERMINAL"}
    environ: dict[str, str] = loot.told["environ"]
    assert {name for name in environ if name.startswith("HANDRAIL")} == mine
    assert re.fullmatch(r"[\w-]{1,20}", environ["HANDRAIL_TERMINAL"])
    assert "FAKE_API_KEY" not in environ
    for secret in (hostile.person, hostile.agent, "sk-of-the-person"):
        assert secret not in str(environ)


def test_no_file_of_the_home_holds_a_bearer_or_a_code(hostile: Attacker) -> None:
    code = hostile.account.link().partition("#code=")[2]
    signed = hostile.account.http("POST", "/api/sign-in", body={"code": code}).json["bearer"]
    secrets = {"code": code, "page": signed, "first page": hostile.person, "agent": hostile.agent}
    told = {
        str(path): name
        for path in hostile.account.home.rglob("*")
        if path.is_file()
        for name, secret in secrets.items()
        if secret.encode() in path.read_bytes()
    }
    # What the attack was given it may have been shown by its terminal; nothing else may hold it.
    assert told == {}


def test_everything_in_the_home_is_closed_to_other_users(hostile: Attacker) -> None:
    home = hostile.account.home
    assert home.stat().st_mode & 0o077 == 0
    own = [path for path in home.rglob("*") if path.name != "config.toml"]
    assert len(own) > 5
    assert [str(path) for path in own if path.lstat().st_mode & 0o007 and not path.is_symlink()] == []


@pytest.mark.parametrize("target", [target for target in targets() if target.area == "person"], ids=str)
def test_the_call_bearer_opens_no_route_of_people(hostile: Attacker, target: Target) -> None:
    method = "GET" if target.is_socket else target.method
    answer = hostile.account.http(method, target.path, hostile.agent, body={})
    assert answer.status == 401
    assert "handrail open" in answer.detail


@pytest.mark.parametrize("tampering", files.TRIES)
def test_no_file_makes_a_person_of_who_writes_to_it(new_account: New, tampering: str) -> None:
    hostile = Attacker(new_account())
    got = hostile.attack("directly", [tampering]).of(tampering)
    assert got.code != 0, got.said
    assert got.said.startswith("401")
    assert hostile.asked()["status"] == "open"


def test_the_tests_attack_as_an_ordinary_user(hostile: Attacker) -> None:
    assert hostile.account.uid != 0
    status = Path(f"/proc/{hostile.account.keeper}/status").read_text()
    assert f"Uid:\t{hostile.account.uid}\t" in status


def test_nobody_reads_the_memory_of_a_persons_command_line(hostile: Attacker) -> None:
    account = hostile.account
    with account.spawn(account.python, "-m", "handrail", "calls", "-f") as watching:
        try:
            until(lambda: account.run("cat", f"/proc/{watching.pid}/environ").returncode, "it hides itself")
            for what in ("environ", "mem", "maps"):
                assert "denied" in account.run("cat", f"/proc/{watching.pid}/{what}").stderr
        finally:
            watching.kill()


def test_another_process_of_the_user_is_readable(hostile: Attacker) -> None:
    """The control: what is denied above is denied by the process, and not by the machine."""
    with hostile.account.spawn("sleep", "60") as plain:
        try:
            assert hostile.account.run("cat", f"/proc/{plain.pid}/environ").returncode == 0
        finally:
            plain.kill()
