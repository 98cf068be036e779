"""What a hostile command tries when it runs under Handrail: to get a person's power, from every posture it can take.

A program of its own: `python attack.py ORDER`, where ORDER is a JSON file that names the posture, the tries and where
to write what came of them. It knows everything a process of the same user can know, and is given a real call bearer.
Each try tells what it got: `code` 0 means that it got what it wanted.
"""

import contextlib
import ctypes
import errno
import hashlib
import http.client
import io
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

BOUND = 60.0
HOME = Path(os.environ.get("HANDRAIL_HOME", "/"))
PTRACE_ATTACH = 16


@dataclass
class Got:
    """What came of one try."""

    code: int
    said: str


def until(seen: Callable[[], Any]) -> Any:
    end = time.monotonic() + BOUND
    while not (found := seen()):
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.005)
    return found


def about() -> dict[str, Any]:
    try:
        return json.loads((HOME / "daemon.json").read_text())
    except (OSError, ValueError):
        return {}


def keeper() -> int:
    return int(until((HOME / "keeper.lock").read_text))


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def above(pid: int) -> Iterator[int]:
    while (pid := parent(pid)) > 0:
        yield pid


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not lives(pid))


# Postures: where in the process tree the attack stands, and what it has done to those above it.


def directly() -> None:
    """A child of the command, and nothing more."""


def after_a_double_fork() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    before = os.getpid()
    if os.fork():
        signal.pause()  # the command has to live on, or its terminal would be swept
    os.setsid()
    if os.fork():
        os._exit(0)
    until(lambda: os.getppid() != before and lives(os.getppid()))


def after_killing_its_warden() -> None:
    after_a_double_fork()
    os.kill(keeper(), signal.SIGSTOP)  # which would otherwise end us at once
    for pid in above(os.getpid()):
        if pid == keeper():
            break
        kill(pid)
    until(lambda: os.getppid() == keeper())


def after_killing_the_keeper() -> None:
    after_killing_its_warden()
    was = keeper()
    kill(was)
    until(lambda: os.getppid() != was)


def after_killing_the_keeper_and_waiting_for_another() -> None:
    was = keeper()
    after_killing_the_keeper()
    until(lambda: keeper() != was and (HOME / "keeper.sock").exists())


def after_killing_the_daemon_which_a_door_starts_again() -> None:
    after_a_double_fork()
    kill(about()["pid"])
    _open_a_door()


def after_killing_both_and_starting_a_daemon() -> None:
    _kill_both()
    _be_the_one_who_starts("--foreground")


def after_killing_both_and_starting_a_quiet_daemon() -> None:
    _kill_both()
    _be_the_one_who_starts("--foreground", "--no-open")


def after_killing_both_and_having_a_door_start_a_daemon() -> None:
    _kill_both()
    _open_a_door()


def after_killing_both_and_standing_in_for_the_keeper() -> None:
    _kill_both()
    if os.fork() == 0:
        _be_a_keeper()
    until(lambda: (HOME / "keeper.sock").exists())
    _be_the_one_who_starts("--foreground", "--no-open")


POSTURES: dict[str, Callable[[], None]] = {
    posture.__name__: posture
    for posture in (
        directly,
        after_a_double_fork,
        after_killing_its_warden,
        after_killing_the_keeper,
        after_killing_the_keeper_and_waiting_for_another,
        after_killing_the_daemon_which_a_door_starts_again,
        after_killing_both_and_starting_a_daemon,
        after_killing_both_and_starting_a_quiet_daemon,
        after_killing_both_and_having_a_door_start_a_daemon,
        after_killing_both_and_standing_in_for_the_keeper,
    )
}
said_at_start: list[str] = []


def _kill_both() -> None:
    after_killing_its_warden()
    kill(about()["pid"])
    kill(keeper())
    for name in ("daemon.json", "daemon.sock", "keeper.sock"):
        (HOME / name).unlink(missing_ok=True)


def _be_the_one_who_starts(*options: str) -> None:
    out = (HOME.parent / "w" / "daemon.said").open("w+")
    argv = [sys.executable, "-m", "handrail", "up", *options]
    daemon = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    until(lambda: about().get("pid") == daemon.pid or daemon.poll() is not None)
    quiet = "--no-open" in options
    until(lambda: quiet or daemon.poll() is not None or "mcp add" in Path(out.name).read_text())
    said_at_start.append(Path(out.name).read_text())


def _open_a_door() -> None:
    door = subprocess.Popen(
        [sys.executable, "-m", "handrail", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert door.stdin is not None
    assert door.stdout is not None
    door.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    door.stdin.flush()
    door.stdout.readline()
    until(lambda: about().get("pid") and lives(about()["pid"]))


def _be_a_keeper() -> None:
    """Holds the keeper's place, and remembers a sign-in that never was."""
    import fcntl  # noqa: PLC0415

    lock = os.open(HOME / "keeper.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(HOME / "keeper.sock"))
    listener.listen()
    while True:
        with listener.accept()[0] as peer, peer.makefile("rb") as lines:
            for line in lines:
                peer.sendall(_keepers_answer(json.loads(line)))


def _keepers_answer(message: dict[str, Any]) -> bytes:
    reply: dict[str, Any]
    match message["is"]:
        case "hello":
            reply = {"is": "welcome", "protocol": message["protocol"], "pid": os.getpid()}
        case "recall":
            import base64  # noqa: PLC0415

            forged = json.dumps({_hash(FORGED): ["s00000000000", "page"]}).encode()
            reply = {"is": "recalled", "id": message["id"], "value": base64.b64encode(forged).decode()}
        case _:
            reply = {"is": "done", "id": message["id"]}
    return json.dumps(reply).encode() + b"\n"


# Tries: a person's verbs, by the command line and by the socket.


def command_line(*arguments: str) -> Callable[["Order"], Got]:
    def attempt(order: "Order") -> Got:
        return _run([argument.format(**order.ids) for argument in arguments])

    return attempt


def _run(arguments: list[str]) -> Got:
    """One command of `handrail`, in a child of our own: it stands where we stand."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.close(read)
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(fd, "w"), write_through=True) for fd in (1, 2))
        from handrail.cli.app import run  # noqa: PLC0415

        os._exit(run(arguments))
    os.close(write)
    with open(read, "rb") as told:
        said = told.read().decode(errors="replace")
    return Got(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said)


def greets_as_a_person(_order: "Order") -> Got:
    reply = _converse("daemon.sock", {"handrail": 1, "want": "person"})
    return Got(0 if reply.get("ok") or "bearer" in reply else 1, json.dumps(reply))


def _converse(name: str, *messages: dict[str, Any]) -> dict[str, Any]:
    """Say something on a socket of the home; the last answer."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(BOUND)
        sock.connect(str(HOME / name))
        said: dict[str, Any] = {}
        with sock.makefile("rb") as lines, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for message in messages:
                sock.sendall(json.dumps(message).encode() + b"\n")
                said = json.loads(lines.readline() or b"{}") or said
    return said


def uses_a_link_that_was_printed(_order: "Order") -> Got:
    """The link that a daemon started by us may have printed."""
    said = "".join(said_at_start)
    if "#code=" not in said:
        return Got(1, said or "Do it on the page: nothing was printed.")
    code = said.partition("#code=")[2].split()[0]
    status, body = _request("POST", "/api/sign-in", None, {"code": code})
    return Got(0 if status == 200 else 1, body)


VERBS: dict[str, Callable[["Order"], Got]] = {
    "greeting": greets_as_a_person,
    "approve": command_line("approve", "{approval}"),
    "deny": command_line("deny", "{approval}"),
    "cancel": command_line("cancel", "{call}"),
    "complete": command_line("complete", "{call}"),
    "open": command_line("open", "--print"),
    "credential": command_line("credential", "--workspace", "{workspace}"),
    "revoke": command_line("credentials", "revoke", "{credential}"),
    "restart": command_line("restart"),
    "down": command_line("down"),
}


# Tries: the keeper's socket.

_START = {"terminal": "tx", "argv": ["/bin/true"], "cwd": "/", "env": {}}
KEEPER_ORDERS: dict[str, dict[str, Any]] = {
    "start": {**_START, "id": 1},
    "input": {"id": 1, "terminal": "{terminal}", "data": "Cg=="},
    "resize": {"id": 1, "terminal": "{terminal}", "cols": 10, "rows": 10},
    "signal": {"id": 1, "terminal": "{terminal}", "number": 9},
    "stop": {"id": 1, "terminal": "{terminal}"},
    "forget": {"id": 1, "terminal": "{terminal}", "delete": True},
    "recall": {"id": 1, "key": "sign-ins"},
    "remember": {"id": 1, "key": "sign-ins", "value": "e30="},
    "health": {"id": 1},
    "shutdown": {"id": 1},
}


def orders_the_keeper(kind: str, greeting: str | None) -> Callable[["Order"], Got]:
    def attempt(_order: "Order") -> Got:
        hello = {"is": "hello", "protocol": 1, "want": greeting}
        said = _converse(
            "keeper.sock", *([hello] if greeting else []), {"is": kind, **KEEPER_ORDERS.get(kind, {})}
        )
        return Got(1 if said.get("is") == "refused" else 0, json.dumps(said))

    return attempt


KEEPER = {
    **{f"{kind} as a daemon": orders_the_keeper(kind, "daemon") for kind in KEEPER_ORDERS},
    **{f"{kind} without a greeting": orders_the_keeper(kind, None) for kind in KEEPER_ORDERS},
    "a greeting that ends it": orders_the_keeper("health", "shutdown"),
}


# Tries: /proc.


def reads(name: str, what: str) -> Callable[["Order"], Got]:
    def attempt(_order: "Order") -> Got:
        path = f"/proc/{_target(name)}/{what}"
        try:
            if what == "fd":
                return Got(0, str(os.listdir(path)))
            with open(path, "rb") as file:
                if what == "maps":
                    return Got(0 if file.read() else 1, "permission denied")
                return Got(0, repr(file.read(100)))
        except OSError as error:
            return _refused_by_system(error)

    return attempt


def traces(name: str) -> Callable[["Order"], Got]:
    def attempt(_order: "Order") -> Got:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(PTRACE_ATTACH, _target(name), 0, 0) == 0:
            return Got(0, "attached")
        return _refused_by_system(OSError(ctypes.get_errno(), "ptrace"))

    return attempt


def _refused_by_system(error: OSError) -> Got:
    return Got(1 if error.errno in (errno.EPERM, errno.EACCES) else 0, "permission denied: " + str(error))


def _target(name: str) -> int:
    warden = next(pid for pid in above(os.getpid()) if parent(pid) == keeper())
    return {"daemon": about()["pid"], "keeper": keeper(), "warden": warden}[name]


_PROC_FILES = ("environ", "mem", "maps", "fd", "auxv", "syscall", "stack")
PROC = {
    **{f"{what} of the {who}": reads(who, what) for who in ("daemon", "keeper", "warden") for what in _PROC_FILES},
    **{f"ptrace of the {who}": traces(who) for who in ("daemon", "keeper", "warden")},
}


# Tries: HTTP, with the bearer of a call and with one of our own making.

FORGED = "forged-by-a-command-that-wants-to-be-a-person"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _request(method: str, path: str, bearer: str | None, body: object = None) -> tuple[int, str]:
    where = urlsplit(about()["url"]).netloc
    headers = {"content-type": "application/json"}
    if bearer is not None:
        headers["authorization"] = f"Bearer {bearer}"
    with contextlib.closing(http.client.HTTPConnection(where, timeout=BOUND)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")


def approves_by_http(bearer: str) -> Callable[["Order"], Got]:
    def attempt(order: "Order") -> Got:
        secret = bearer.format(**order.ids)
        path = f"/api/approvals/{order.ids['approval']}/answer"
        body = {"answer": "allow", "digest": order.ids["digest"]}
        status, said = _request("POST", path, secret, body)
        return Got(1 if status in (401, 403) else 0, said)

    return attempt


HTTP = {"the call bearer": approves_by_http("{bearer}"), "a forged bearer": approves_by_http(FORGED)}


# Tries: files.


def alters_the_files(order: "Order") -> Got:
    """Write ourselves into every file that could hold who is let in, and have the daemon start anew."""
    with contextlib.closing(sqlite3.connect(HOME / "handrail.db", timeout=5)) as database, database:
        columns = [row[1] for row in database.execute("pragma table_info(credentials)")]
        ours = {"id": "k00000000000", "name": "person", "workspace": "/", "sha256": _hash(FORGED)}
        values = [ours.get(name, 0 if name.endswith(("_at", "_seq")) else None) for name in columns]
        values = [None if name == "revoked_at" else value for name, value in zip(columns, values, strict=True)]
        marks = ",".join("?" * len(columns))
        database.execute(f"insert into credentials values ({marks})", values)
    forged = {**about(), "sign_ins": {_hash(FORGED): ["s0", "page"]}, "person": _hash(FORGED), "bearer": FORGED}
    (HOME / "daemon.json").write_text(json.dumps(forged))
    for name in ("sign-ins", "sign_ins.json", "access.json", "bearers"):
        (HOME / name).write_text(json.dumps(forged["sign_ins"]))
    after_killing_the_daemon_which_a_door_starts_again()
    return HTTP["a forged bearer"](order)


FILES = {"alters the files": alters_the_files}
AT_START = {"a printed link": uses_a_link_that_was_printed}
TRIES = {**VERBS, **KEEPER, **PROC, **HTTP, **FILES, **AT_START}


@dataclass
class Order:
    """What the test wants tried."""

    posture: str
    tries: list[str]
    ids: dict[str, str]
    out: str


def main(path: str) -> None:
    order = Order(**json.loads(Path(path).read_text()))
    import handrail.cli.app  # noqa: F401, PLC0415  (once, before the forks)

    told: dict[str, Any] = {"environ": dict(os.environ)}
    try:
        POSTURES[order.posture]()
        told["above"] = list(above(os.getpid()))
        told["got"] = {}
        for name in order.tries:
            got = TRIES[name](order)
            told["got"][name] = [got.code, got.said]
    except BaseException as error:
        told["broke"] = f"{type(error).__name__}: {error}"
    fresh = Path(order.out + ".new")
    fresh.write_text(json.dumps(told))
    fresh.rename(order.out)
    with contextlib.suppress(OSError, ValueError):
        os.kill(keeper(), signal.SIGCONT)


if __name__ == "__main__":
    main(sys.argv[1])
