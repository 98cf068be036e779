"""Writes the table of hosted agents in docs/agents.md from what the last runs observed (`run_record.py`).

python -m tests.real_agents.scenario_table      fails if an agent has not passed every scenario
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.real_agents.agent_catalog import ALWAYS, EXAMPLE, MORE
from tests.real_agents.real_agent import Real
from tests.real_agents.run_record import SCENARIOS, Scenario, read_observed

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "agents.md"
BEGIN, END = "<!-- table of agents: begin -->\n", "<!-- table of agents: end -->\n"
ALL = (*ALWAYS, *MORE, EXAMPLE)
HEADINGS: dict[Scenario, str] = {
    "stream": "streams",
    "command": "a command",
    "denial": "after a denial",
    "file": "writes a file",
    "own_tools": "Handrail's tools",
    "cancel_command": "Stop: command",
    "cancel_question": "Stop: question",
    "cancel_model": "Stop: model",
    "agent_killed": "killed: goes on",
    "daemon_killed": "takes up the conversation",
}


Observed = tuple[Real, Mapping[Scenario, str]]


def write_table(text: str, agents: Sequence[Observed]) -> str:
    """The document with the table of these agents, and the remarks about them."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "".join(line + "\n" for line in _lines(agents))
    return f"{before}{BEGIN}{table}{END}{after}"


def _lines(agents: Sequence[Observed]) -> Iterator[str]:
    headings = [HEADINGS[scenario] for scenario in SCENARIOS]
    yield _row("agent", "version", *headings)
    yield "|---" * (len(headings) + 2) + "|"
    for real, observed in agents:
        name = f"{real.title} (`{real.package.removesuffix('-*')}`)"
        yield _row(name, real.version, *(observed[scenario] for scenario in SCENARIOS))
    yield ""
    yield from (f"- **{real.title}** {remark}" for real, _ in agents for remark in real.remarks)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    agents = [(real, read_observed(real)) for real in ALL]
    missing = [
        f"{real.name}: {', '.join(scenario for scenario in SCENARIOS if scenario not in observed)}"
        for real, observed in agents
        if len(observed) < len(SCENARIOS)
    ]
    if missing:
        sys.exit("\n".join(("These scenarios have not passed in the last run of their agent:", *missing)))
    DOCUMENT.write_text(write_table(DOCUMENT.read_text(), agents))


if __name__ == "__main__":
    main()
