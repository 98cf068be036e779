"""Decisions by rules: five commands in one line under 200 rules, and the share of such a decision in a whole call.

Calls the rules in this process: they take microseconds, which no client could measure from outside.
"""

import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import anyio

from bench.client import Client
from bench.daemon import Daemon, with_daemon
from bench.line import Figure, Line, Measurement, Target
from bench.samples import ROUNDS, median, time_p50
from handrail.gate.rules.policy import FolderSettings, Policy
from handrail.gate.rules.rules import Rules, UserRules
from handrail.gate.rules.trust import TrustedFolder
from handrail.store.journal import open_journal
from handrail.store.values import Caller, Claim, Effect, Rule
from handrail.tools.commands.command_claims import command_claims, read_line
from handrail.tools.commands.programs import find_programs
from handrail.tools.workspace import Workspace

LINE = "git add src && git commit -m 'Say why' && npm run test:unit -- --watch=false | grep -v ok; make docs"
"""Five commands, each allowed by a rule."""
ALLOWED = ("git add", "git commit", "npm run test:*", "grep", "make docs")
DECISIONS, CALLS = 2000, 60
"""In one round."""
MICROSECONDS = 1_000_000
"""In a second."""


def measure_decision() -> Generator[Figure]:
    with tempfile.TemporaryDirectory(prefix="hb") as folder:
        root = os.path.realpath(folder)
        caller = Caller(door="stdio", client="bench", key="bench", workspace=root)
        policy = Policy(_build_rules(), FolderSettings(trusted=True), root=root, home="/home/bench")
        claims = _read_claims(LINE, Path(folder))
        decision = policy.decide("execute_command", claims, caller)
        assert (decision.effect, len(claims), len(policy.rules)) == ("allow", 5, 200), decision
        samples = [
            time_p50(lambda: policy.decide("execute_command", claims, caller), DECISIONS)
            for _ in range(ROUNDS)
        ]
    yield Figure(median(samples) * MICROSECONDS)


def measure_share(daemon: Daemon) -> Generator[Figure]:
    """The share of parsing, claims, program lookup and decision in a whole call, measured in turns with the call."""
    body = {"command": "true", "workspace": str(daemon.workspace)}
    rule = daemon.post("/api/rules", body)["rule"]
    with daemon.connect() as client:
        rounds = [
            (anyio.run(_time_judgement, daemon.workspace.resolve()), _time_calls(client, daemon, rule["id"]))
            for _ in range(ROUNDS)
        ]
    judgement, call = (median(column) for column in zip(*rounds, strict=True))
    note = (
        f"{judgement * MICROSECONDS:.0f} µs of the {call * 1000:.1f} ms of execute_command `true`, "
        "allowed by one of 200 rules"
    )
    yield Figure(median([ours / whole for ours, whole in rounds]) * 100, note=note)


async def _time_judgement(workspace: Path) -> float:
    """The p50, in seconds, of all the work that rules cause in such a call."""
    caller = Caller(door="stdio", client="bench", key="bench", workspace=str(workspace))
    standing = UserRules(rules=(Rule(id="r", effect="allow", command="true"), *_build_rules()[1:]))
    with tempfile.TemporaryDirectory() as folder:
        async with open_journal(Path(folder, "a.db"), Path(folder, "a.head")) as journal:
            trusted = [TrustedFolder(folder=str(workspace), config=None)]
            rules = Rules(journal, standing, trusted=trusted)

            def judge() -> None:
                find_programs(read_line("true"), str(workspace), os.environ["PATH"])
                claims = _read_claims("true", workspace)
                decision = rules.policy(caller).decide("execute_command", claims, caller)
                assert decision.rule == "r"

            return time_p50(judge, CALLS)


def _time_calls(client: Client, daemon: Daemon, rule: str) -> float:
    def run() -> None:
        result = client.call("execute_command", {"command": "true"})
        assert result["structuredContent"]["exit_code"] == 0, result

    p50 = time_p50(run, CALLS)
    last = daemon.get("/api/calls?limit=1")
    assert last[0]["allowed_by"] == f"rule {rule}", last
    return p50


def _read_claims(line: str, workspace: Path) -> tuple[Claim, ...]:
    """The claims of execute_command, parsed and resolved again each time."""
    within = Workspace(str(workspace))
    return command_claims(read_line(line), within.place(str(workspace)), within, os.environ["PATH"])


def _build_rules() -> list[Rule]:
    """200 rules of all kinds, as a person may have collected: most match commands, and few of those match these."""
    allowed = [
        Rule(id=f"ra{place}", effect="allow", command=command) for place, command in enumerate(ALLOWED)
    ]
    effects: tuple[Effect, ...] = ("allow", "ask", "deny")
    programs = (
        "git",
        "npm",
        "make",
        "grep",
        "cargo",
        "docker",
        "pip",
        "kubectl",
        "go",
        "uv",
        "terraform",
        "gh",
    )
    commands = [
        Rule(
            id=f"rc{n}",
            effect=effects[n % 3],
            command=f"{programs[n % 12]} other{n}",
            agent="claude*" if n % 5 else None,
        )
        for n in range(135)
    ]
    paths = [Rule(id=f"rp{n}", effect=effects[n % 3], path=f"src/{n}/**/*.py") for n in range(35)]
    hosts = [Rule(id=f"rh{n}", effect=effects[n % 3], host=f"*.{n}.example.org") for n in range(15)]
    tools = [Rule(id=f"rt{n}", effect=effects[n % 3], tool=f"tool_{n}") for n in range(10)]
    return [*allowed, *commands, *paths, *hosts, *tools]


MEASUREMENTS = (
    Measurement(
        (Line("decide 5 commands, 200 rules p50", "µs", Target("at most", 200.0)),), measure_decision
    ),
    Measurement(
        (Line("rules' share of a tracked call", "%", Target("at most", 10.0)),), with_daemon(measure_share)
    ),
)
