"""The checks of `handrail doctor`: processes, configuration, permissions, disk, page, ripgrep, journal,
agent."""

import http.client
import json
import os
import shutil
import socket
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any, Literal
from urllib.parse import urlsplit

from handrail import __version__
from handrail.config import OWN_AGENT, PROVIDER_SECRETS, PROVIDER_VARIABLES, BadConfig, load
from handrail.door.connect import HelloRefused, Impostor, dial, dial_path, say_hello
from handrail.door.own_processes import find_daemon, find_hung_keeper, find_keeper
from handrail.launcher.trusted_programs import find_program
from handrail.lazy_dataclass import dataclass
from handrail.paths import Places
from handrail.process_state import describe_hang
from handrail.provider_keys import read_keys
from handrail.regular_file import read_regular_file
from handrail.store.anchor import check_anchor
from handrail.store.hash_chain import Link
from handrail.store.integrity import backup, has_event, verify
from handrail.store.rule_replay import replay_rules

Level = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check, and the fix if there is a problem."""

    name: str
    level: Level
    says: str
    fix: str | None = None


FORCE = "handrail down --force, then handrail up"
ANSWER_SECONDS = 10.0
"""Bounds the wait for a daemon that hangs; a healthy one answers in milliseconds."""


def check_processes(places: Places, within: float = ANSWER_SECONDS) -> Iterator[Finding]:
    try:
        sock = dial(places)
    except Impostor as impostor:
        yield Finding(name="daemon", level="bad", says=impostor.why, fix=impostor.fix)
        return
    if sock is None:
        yield Finding(name="daemon", level="warn", says="The daemon is not running.", fix="handrail up")
        yield from _check_orphaned_keeper(places)
        yield from _check_port(places, None)
        return
    with closing(sock):
        try:
            reply = say_hello(sock, "read", within=within)
            health = _fetch("health", reply["url"], reply["bearer"])
            policy = _fetch("policy", reply["url"], reply["bearer"])
        except (HelloRefused, OSError, http.client.HTTPException, ValueError) as problem:
            yield _explain_hung_daemon(places, problem)
            yield from _check_orphaned_keeper(places)
            return
    yield Finding(name="daemon", level="ok", says=f"Runs at {reply['url']} (pid {reply['pid']}).")
    yield _check_version(reply["version"])
    yield _check_keeper(health)
    yield from _check_restarts(places, health)
    yield from _check_policy(places, policy)
    yield from _check_port(places, reply["url"])


def _fetch(what: str, url: str, bearer: str) -> dict[str, Any]:
    where = urlsplit(url).netloc
    with closing(http.client.HTTPConnection(where, timeout=ANSWER_SECONDS)) as connection:
        connection.request("GET", f"/api/{what}", headers={"Authorization": f"Bearer {bearer}"})
        return json.loads(connection.getresponse().read())


def _check_version(daemon: str) -> Finding:
    if daemon == __version__:
        return Finding(name="version", level="ok", says=f"Command and daemon are both {daemon}.")
    says = f"The daemon is version {daemon}, this command {__version__}."
    return Finding(name="version", level="warn", says=says, fix="handrail restart")


def _check_keeper(health: dict[str, Any]) -> Finding:
    keeper, hung = health.get("keeper"), health.get("hung_keeper")
    if keeper:
        return Finding(name="keeper", level="ok", says=f"Lives (pid {keeper['pid']}).")
    if hung:
        return _explain_hung_keeper(hung)
    says = "The daemon has lost its keeper, so no command can be run."
    return Finding(name="keeper", level="bad", says=says, fix="handrail restart")


def _check_restarts(places: Places, health: dict[str, Any]) -> Iterator[Finding]:
    """Whether the keeper had to restart the daemon."""
    restarts, at = health.get("restarts", 0), health.get("restarted_at")
    if restarts and at:
        often = "once" if restarts == 1 else f"{restarts} times"
        when = datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        says = f"The keeper restarted the daemon {often}, last at {when}: it had ended unexpectedly."
        yield Finding(name="restarts", level="warn", says=says, fix=f"look for the reason in {places.logs}")


def _explain_hung_daemon(places: Places, problem: Exception) -> Finding:
    pid = find_daemon(places)
    says = (
        f"The daemon runs but does not answer ({problem})."
        if pid is None
        else describe_hang("daemon", pid, f"({problem})")
    )
    return Finding(name="daemon", level="bad", says=says, fix=FORCE)


def _explain_hung_keeper(pid: int) -> Finding:
    says = describe_hang("keeper", pid, "No command can be run meanwhile.")
    return Finding(name="keeper", level="bad", says=says, fix=FORCE)


def _check_policy(places: Places, policy: dict[str, Any]) -> Iterator[Finding]:
    """Whether the policy is in force, and whether the journal on disk still has the last event of the daemon.

    The daemon knows that event from its memory, so a recomputed hash chain does not pass.
    """
    changes = [f"{change['change']}: {change['what']}" for change in policy.get("changes", ())]
    if changes:
        says = " · ".join([policy["suspended"], *changes[:MOST_FAULTS]])
        yield Finding(name="policy", level="bad", says=says, fix="handrail rules accept")
    elif "changes" in policy:
        says = "Rules, trusted folders and settings are as a person accepted them."
        yield Finding(name="policy", level="ok", says=says)
    if "head_seq" in policy:
        head = Link(policy["head_seq"], bytes.fromhex(policy["head_chain"]))
        if not _has_event(places.database, head):
            says = f"The daemon wrote event {head.seq}, which is gone or altered in {places.database}."
            yield Finding(name="journal", level="bad", says=says, fix=COPY)


def _has_event(database: Path, head: Link) -> bool:
    try:
        return has_event(database, head)
    except sqlite3.Error:
        return False


def _check_orphaned_keeper(places: Places) -> Iterator[Finding]:
    try:
        listening = dial_path(str(places.keeper_socket))
    except Impostor as impostor:
        yield Finding(name="keeper", level="bad", says=impostor.why, fix=impostor.fix)
        return
    if listening is not None:
        listening.close()
    hung = find_hung_keeper(places)
    if hung is not None:
        yield _explain_hung_keeper(hung)
    elif find_keeper(places) is not None:
        says = "A keeper still holds what the last daemon started."
        yield Finding(
            name="keeper", level="warn", says=says, fix="handrail up   (or handrail down, to end it)"
        )


def _check_port(places: Places, url: str | None) -> Iterator[Finding]:
    try:
        configured = load(places.config).server.port
    except BadConfig:
        return  # `check_config` reports it
    used = urlsplit(url).port if url else None
    if used in (configured, None) and (used or _is_free(configured)):
        yield Finding(name="port", level="ok", says=f"{configured}, as configured.")
        return
    if used and _is_free(configured):
        yield _explain_moved_port(places, configured, used)
        return
    says = f"Port {configured} is taken by another program" + (f", so {used} is used." if used else ".")
    fix = f"Set another port under [server] in {places.config}."
    yield Finding(name="port", level="warn", says=says, fix=fix)


def _explain_moved_port(places: Places, configured: int, used: int) -> Finding:
    """The finding for a configured port that is free but not used: another was requested, or it was taken at
    the start."""
    if _read_requested_port(places) != configured:
        return Finding(name="port", level="ok", says=f"{used}, as asked for at the start.")
    says = f"{used}, because {configured} was taken at the start; it is free now."
    return Finding(name="port", level="warn", says=says, fix="handrail down, then handrail up")


def _read_requested_port(places: Places) -> int | None:
    """The port that was requested at the daemon's start."""
    try:
        return int(read_regular_file(places.port).split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


LOW_BYTES = 1 << 30
"""Free space below which a few large outputs may fill the disk."""
NO_BYTES = 100 << 20
"""Free space below which the journal may soon be unwritable, and every call refused."""


def check_rules(path: Path) -> None:
    """Check the rules in this file and their examples. Raises BadConfig."""
    config = load(path)
    if config.rules:
        from handrail.gate.rules.rules import UserRules  # noqa: PLC0415 - brings the shell's grammar

        UserRules.of(config, path, os.path.realpath(Path.home()))


def check_config(places: Places) -> Finding:
    try:
        check_rules(places.config)
    except BadConfig as problem:
        return Finding(
            name="config", level="bad", says=str(problem), fix="Mend it, then run `handrail restart`."
        )
    says = f"{places.config} is in order." if places.config.exists() else "Everything is at its default."
    return Finding(name="config", level="ok", says=says)


def check_permissions(places: Places) -> list[Finding]:
    """Whether other users can read or change Handrail's files."""
    findings = [*_find_open_directories(places), *_find_open_files(places)]
    if findings:
        return findings
    return [Finding(name="permissions", level="ok", says=f"{places.data} is private to this user.")]


def check_disk(places: Places) -> Finding:
    folder = next(each for each in (places.data, *places.data.parents) if each.exists())
    free = shutil.disk_usage(folder).free
    level = "bad" if free < NO_BYTES else "warn" if free < LOW_BYTES else "ok"
    fix = None if level == "ok" else f"Free some space where {folder} lies."
    return Finding(
        name="disk", level=level, says=f"{free / (1 << 30):.1f} GiB are free in {folder}.", fix=fix
    )


def check_page(package: Path) -> Finding:
    if (package / "server" / "static" / "index.html").exists():
        return Finding(name="page", level="ok", says="The page is built.")
    fix = "make ui   (in a checkout; else install Handrail again)"
    return Finding(
        name="page", level="bad", says="The page is not built, so a browser shows nothing.", fix=fix
    )


def check_ripgrep() -> Finding:
    program = find_program("rg", os.environ.get("PATH", ""), bundled=True)
    if program:
        return Finding(name="ripgrep", level="ok", says=f"Search uses {program}.")
    says = "There is no rg, so files and terminals cannot be searched."
    return Finding(name="ripgrep", level="bad", says=says, fix="Install ripgrep with your system's packages.")


def _find_open_directories(places: Places) -> Iterator[Finding]:
    for folder in dict.fromkeys((places.config_dir, places.data, places.state, places.logs)):
        if not folder.exists():
            continue
        status = folder.stat()
        if status.st_uid != os.getuid():
            says, fix = f"{folder} belongs to another user.", f"sudo chown -R $(id -u) {quote(str(folder))}"
            yield Finding(name="permissions", level="bad", says=says, fix=fix)
        elif status.st_mode & 0o077:
            says = f"{folder} is open to others ({stat.filemode(status.st_mode)})."
            yield Finding(name="permissions", level="bad", says=says, fix=f"chmod 700 {quote(str(folder))}")


def _find_open_files(places: Places) -> Iterator[Finding]:
    """Files with open permissions: not readable while their folder is private, but one mistake away from it."""
    sockets = (places.daemon_socket, places.keeper_socket)
    database = (places.database.with_name(places.database.name + end) for end in ("", "-wal", "-shm"))
    for file in (*database, places.head, places.daemon_json, *sockets):
        if file.exists() and (mode := file.stat().st_mode) & 0o077:
            says, fix = f"{file} is open to others ({stat.filemode(mode)}).", f"chmod 600 {quote(str(file))}"
            yield Finding(name="permissions", level="bad", says=says, fix=fix)
    if places.config.exists() and places.config.stat().st_mode & 0o022:
        says, fix = f"Others may write {places.config}.", f"chmod 600 {quote(str(places.config))}"
        yield Finding(name="permissions", level="bad", says=says, fix=fix)


MOST_FAULTS = 10
"""Faults shown of one check."""
REBUILD = " `handrail restart` rebuilds the tables from the journal."
COPY = "Keep a copy with `handrail doctor --backup FILE`, then find out who wrote to the database."


def check_journal(places: Places) -> Finding:
    """Verify the journal's hash chain and its head."""
    if not places.database.exists():
        if places.head.exists():
            says = f"{places.database} is gone, though it was there: {places.head.name} still names its last event."
            return Finding(name="journal", level="bad", says=says, fix="Put a backup in its place.")
        return Finding(name="journal", level="ok", says="There is none yet: nothing has happened.")
    if not places.database.is_file():
        says = f"{places.database} is not a regular file."
        return Finding(name="journal", level="bad", says=says, fix="Put a backup in its place.")
    if places.database.stat().st_size == 0 and places.head.exists():
        says = f"{places.database} is empty, but {places.head.name} names its last event."
        return Finding(name="journal", level="bad", says=says, fix="Put a backup in its place.")
    verdict, anchored = verify(places.database, places.head), check_anchor(places.database)
    is_whole = verdict.ok and not anchored
    return Finding(
        name="journal",
        level="ok" if is_whole else "bad",
        says=" ".join([str(verdict), *anchored[:MOST_FAULTS]]),
        fix=None if is_whole else COPY,
    )


def check_rule_tables(places: Places) -> Finding:
    """Compare the tables of rules and trusted folders with the events they are derived from."""
    if not places.database.exists():
        return Finding(name="rules", level="ok", says="There are none yet.")
    try:
        replay = replay_rules(places.database)
    except sqlite3.Error as error:
        return Finding(name="rules", level="bad", says=f"The database cannot be read ({error}).", fix=COPY)
    if replay.faults:
        more = len(replay.faults) - MOST_FAULTS
        says = " ".join([*replay.faults[:MOST_FAULTS], *([f"And {more} more."] if more > 0 else [])])
        return Finding(name="rules", level="bad", says=says, fix=COPY + REBUILD)
    counts = f"{len(replay.rules)} added by people, {len(replay.folders)} trusted folders"
    return Finding(name="rules", level="ok", says=f"{counts}, as the journal has them.")


def back_up(places: Places, target: Path) -> Finding:
    """Copy the database to a new file; works while a daemon writes."""
    if not places.database.exists():
        return _backup_failed(
            f"there is no database at {places.database} yet", "Start Handrail once: `handrail up`."
        )
    try:
        verdict = backup(places.database, target)
    except FileExistsError as error:
        return _backup_failed(str(error).rstrip("."), None)
    except (OSError, sqlite3.Error) as error:
        return _backup_failed(
            f"{target} could not be written ({error})", "Name a file in a folder that you may write."
        )
    says = f"{verdict.rows} events are in {target}."
    if not verdict.ok:
        says += f" {verdict}"
    return Finding(name="backup", level="ok" if verdict.ok else "bad", says=says)


def _backup_failed(why: str, fix: str | None) -> Finding:
    return Finding(name="backup", level="bad", says=f"No copy was made: {why}.", fix=fix)


MADE_OF = ("acp", "anthropic", "mcp", "openai", "pydantic_ai")


def check_own_agent(places: Places, environ: Mapping[str, str]) -> Finding:
    missing = [name for name in MADE_OF if find_spec(name) is None]
    if missing:
        says = f"Our own agent cannot run: {', '.join(missing)} cannot be imported."
        return Finding(name="agent", level="bad", says=says, fix="Install Handrail again.")
    sources_found = {name: where for name, where in variable_sources(places, environ).items() if where}
    described = "; ".join(f"{name} ({', '.join(where)})" for name, where in sources_found.items())
    says = (
        f"Our own agent has {described}."
        if sources_found
        else "Our own agent has no key here, and needs one unless Ollama runs: `handrail keys set anthropic`."
    )
    return Finding(name="agent", level="ok", says=says)


def variable_sources(places: Places, environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The sources that set each variable, in order of precedence."""
    configured, secret = _read_configured(places), read_keys(*PROVIDER_SECRETS)
    return {
        name: (
            *(["environment"] if environ.get(name, "").strip() else []),
            *(["config"] if name in configured else []),
            *(["keyring"] if name in secret else []),
        )
        for name in PROVIDER_VARIABLES
    }


def _read_configured(places: Places) -> set[str]:
    """Variables that `[[agents]]` sets for our own agent."""
    try:
        sections = load(places.config).agents
    except BadConfig:
        return set()  # `check_config` reports it
    return {name for section in sections if section.name == OWN_AGENT for name in section.env}
