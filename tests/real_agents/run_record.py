"""What a run observed of each agent, in a file for each under build/, from which `scenario_table.py` writes a table.

A scenario is recorded at the end of its test, so what is not recorded has failed or was not run.
"""

import json
from typing import Any, Literal, get_args

from tests.real_agents.install import BUILD
from tests.real_agents.real_agent import Real

Scenario = Literal[
    "stream",
    "command",
    "denial",
    "file",
    "own_tools",
    "cancel_command",
    "cancel_question",
    "cancel_model",
    "agent_killed",
    "daemon_killed",
]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
RECORDS = BUILD / "agents-run"


def forget(real: Real) -> None:
    """Begin a run of this agent."""
    (RECORDS / f"{real.name}.json").unlink(missing_ok=True)


def record(real: Real, scenario: Scenario, observed: str) -> None:
    """Record what the agent did in a scenario, in words for its table."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    about = {"version": real.version, "observed": {**read_observed(real), scenario: observed}}
    (RECORDS / f"{real.name}.json").write_text(json.dumps(about, indent=2) + "\n")


def read_observed(real: Real) -> dict[Scenario, str]:
    """What was recorded of this version of an agent."""
    path = RECORDS / f"{real.name}.json"
    about: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    return about["observed"] if about.get("version") == real.version else {}
