"""What is known of one third-party agent: how it is started without a network, and the facts in which agents differ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.real_agents.install import SETS, PackageSet, PythonSet, node
from tests.support.model_server.script import Turn

Json = dict[str, Any]
Question = Literal["agent_work", "write_file", "execute_command"]
"""What a person is asked about: work that the agent does itself, or a file or terminal request that Handrail carries out."""
BY_ITSELF: tuple[Question, ...] = ("agent_work",)
"""The agent asks, and does the work itself."""
BY_US: tuple[Question, ...] = ("write_file",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """An agent, the way it is tried."""

    name: str
    title: str
    """Of its row in docs/agents.md."""
    package: str
    """Whose version is the agent's."""
    source: PackageSet | PythonSet
    command: Callable[[], tuple[str, ...]]
    environment: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    """What it needs to take the model on this address for its own."""
    files: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    """What must lie in its home, for the model on this address: its settings, so that it stays away from the network."""
    writes: Callable[[Path, str], Turn] = field(default=lambda _path, _text: Turn())
    """Its own tool for writing a file."""
    runs: Callable[[str], Turn] = field(default=lambda _line: Turn())
    """Its own tool for running a command."""
    ours: Callable[[str, Json], Turn] | None = None
    """A use of one of our tools, of the MCP server that it is given; None if it takes no server."""
    run_asks: tuple[Question, ...] = BY_ITSELF
    """What is asked about one command, in this order."""
    write_asks: tuple[Question, ...] = BY_ITSELF
    """What is asked about one new file, in this order; nothing if it writes unasked, which Handrail records."""
    denial_ends_turn: bool = False
    """Whether its turn ends with a denial, so that its model is not asked again."""
    leaves: Callable[[str], Turn] | None = None
    """Its tool for a command that its model does not wait for, which runs on after a cancel until Handrail stops it."""
    is_broken_by_cancel: bool = False
    """Whether its model refuses its session once a tool call was cancelled, so that Handrail gives it a new one."""
    names_record_by_minute: bool = False
    """Whether it cannot load the record of a session that began in the same minute."""
    tells_its_host: bool = False
    """Whether it adds messages of its own to what the model says."""
    takes_up: Literal["resumed", "loaded"] | None = "resumed"
    """How it goes on with a conversation after it was ended; None if it keeps no record, and gets a summary."""
    finds_us_late: bool = False
    """Whether it looks for our tools while it already works on the first prompts."""
    quirks: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Of its section in the configuration."""
    remarks: tuple[str, ...] = ()
    """Sentences about it below the table of docs/agents.md."""

    @property
    def version(self) -> str:
        return self.source.version(self.package)


def named(pattern: str) -> Callable[[str, Json], Turn]:
    return lambda tool, values: Turn("With yours.", pattern.format(tool), values)


def script_command(group: str, package: str, entry: str, *args: str) -> Callable[[], tuple[str, ...]]:
    return lambda: (str(node()), str(SETS[group].modules / package / entry), *args)


def binary_command(group: str, pattern: str, *args: str) -> Callable[[], tuple[str, ...]]:
    """The program for this machine: only one of the platform packages is installed."""

    def command() -> tuple[str, ...]:
        (path,) = SETS[group].modules.glob(pattern)
        return (str(path), *args)

    return command
