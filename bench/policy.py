"""Deciding by rules: five commands in one line under 200 rules, and what that adds to a call that a rule allows."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from bench.client import Client
from bench.figures import ROUNDS, Line, Target, median, percentile
from bench.stage import Stage
from handrail.gate.rules.builtin import Standpoint
from handrail.gate.rules.folders import Trusted
from handrail.gate.rules.rule import Policy
from handrail.gate.rules.rules import Rules
from handrail.gate.rules.standing import Standing
from handrail.store.journal import open_journal
from handrail.store.value import Caller, Claim, Effect, Rule
from handrail.tools.commands.command_claims import command_claims, read_line
from handrail.tools.commands.programs import programs
from handrail.tools.workspace import Workspace

LINE = "git add src && git commit -m 'Say why' && npm run test:unit -- --watch=false | grep -v ok; make docs"
"""Five commands, each allowed by a rule."""
ALLOWED = ("git add", "git commit", "npm run test:*", "grep", "make docs")
DECISIONS, CALLS = 2000, 60
"""In one round."""


def run(stage: Stage) -> list[Line]:
    return [_decide(stage.workspace), _share(stage)]


def _decide(workspace: Path) -> Line:
    root = os.path.realpath(workspace)
    caller = Caller(door="stdio", client="bench", key="bench", workspace=root)
    policy = Policy(_rules(), Standpoint(trusted=True), root=root, home="/home/bench")
    claims = _claims(LINE, workspace)
    decision = policy.decide("execute_command", claims, caller)
    assert (decision.effect, len(claims), len(policy.rules)) == ("allow", 5, 200), decision
    took = median(
        [_p50(lambda: policy.decide("execute_command", claims, caller), DECISIONS) for _ in range(ROUNDS)]
    )
    return Line(
        what="decide 5 commands, 200 rules p50",
        ours=took,
        peer=None,
        unit="µs",
        target=Target("at most", 200.0),
    )


def _share(stage: Stage) -> Line:
    """What reading, claiming, looking for programs and deciding take of a whole call; the rest needs no rules."""
    rule = stage.post("/api/rules", {"command": "true", "workspace": str(stage.workspace)})["rule"]
    with stage.client() as client:
        rounds = [
            (anyio.run(_judging, stage.workspace.resolve()), _calls(client, stage, rule["id"]))
            for _ in range(ROUNDS)
        ]
    judging, whole = median([mine for mine, _ in rounds]), median([call for _, call in rounds])
    return Line(
        what="rules' share of a tracked call",
        ours=median([mine / call for mine, call in rounds]) * 100,
        peer=None,
        unit="%",
        target=Target("at most", 10.0),
        note=f"{judging:.0f} µs of the {whole / 1000:.1f} ms of execute_command `true`, allowed by one of 200 rules",
    )


async def _judging(workspace: Path) -> float:
    """All that is done for rules on the way of such a call, with 200 of them."""
    caller = Caller(door="stdio", client="bench", key="bench", workspace=str(workspace))
    standing = Standing(rules=(Rule(id="r", effect="allow", command="true"), *_rules()[1:]))
    with tempfile.TemporaryDirectory() as folder:
        async with open_journal(Path(folder, "a.db"), Path(folder, "a.head")) as journal:
            trusted = [Trusted(folder=str(workspace), config=None)]
            rules = Rules(journal, standing, trusted=trusted)

            def judge() -> None:
                programs(read_line("true").parts, str(workspace), os.environ["PATH"])
                decision = rules.policy(caller).decide("execute_command", _claims("true", workspace), caller)
                assert decision.rule == "r"

            return _p50(judge, CALLS)


def _calls(client: Client, stage: Stage, rule: str) -> float:
    samples: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        result = client.call("execute_command", {"command": "true"})
        samples.append(time.perf_counter() - began)
        assert result["structuredContent"]["exit_code"] == 0
    last = stage.get("/api/calls?limit=1")
    assert last[0]["allowed_by"] == f"rule {rule}", last
    return percentile(samples, 0.5) * 1_000_000


def _claims(line: str, workspace: Path) -> tuple[Claim, ...]:
    """As execute_command claims it: read, resolved and judged from nothing, each time."""
    within = Workspace(str(workspace))
    return command_claims(read_line(line), within.place(str(workspace)), within, os.environ["PATH"])


def _rules() -> list[Rule]:
    """200 of all kinds, as a person may have gathered: most about commands, few of them about these."""
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


def _p50(work: Callable[[], object], times: int) -> float:
    samples: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        samples.append(time.perf_counter() - began)
    return percentile(samples, 0.5) * 1_000_000
