"""The script of `handrail demo`: the agent's calls, and the text that guides the person.

The agent works in a temporary project; a second act uses a shared terminal. Handrail alone decides about
approvals: the script sees only outcomes.
"""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio

from handrail.demo.mcp_client import ASKS, Agent, DoorClosed, Print, Reply, open_door
from handrail.lazy_dataclass import dataclass

README = """\
# Orchard

Counts apples. `python apples.py` prints how many there are.
"""

APPLES = '''\
"""How many apples there are."""

TREES = {"north": 12, "south": 7}


def count(trees):
    total = 0
    for name in trees:
        total = total + trees[name]
    return total


def describe(trees):
    """One line for each tree, in the order of the alphabet."""
    lines = []
    for name in names(trees):
        lines.append(f"{name}: {trees[name]}")
    return lines


def names(trees):
    found = []
    for name in trees:
        found.append(name)
    found.sort()
    return found


def largest(trees):
    """The most apples on one tree."""
    return max(trees.values())


# TODO: say which tree has the most
print(count(TREES))
'''

EDIT = """\
<<<<<<< SEARCH
    total = 0
    for name in trees:
        total = total + trees[name]
    return total
=======
    return sum(trees.values())
>>>>>>> REPLACE
<<<<<<< SEARCH
    found = []
    for name in trees:
        found.append(name)
    found.sort()
    return found
=======
    return sorted(trees)
>>>>>>> REPLACE
<<<<<<< SEARCH
print(count(TREES))
=======
print(count(TREES), "apples, and not one of them is bad")
>>>>>>> REPLACE
"""
"""Three hunks; a person may want to reject the last one."""

GATE = '''\
"""Opens the gate to the orchard."""

from getpass import getpass

word = getpass("The gate's secret word (any will do): ")
print("The gate to the orchard is open." if word else "The gate stays shut.")
raise SystemExit(not word)
'''


@dataclass(frozen=True, slots=True)
class Scene:
    """The temporary project, and a folder outside of it."""

    project: Path
    elsewhere: Path


@contextmanager
def make_scene(project: Path | None = None) -> Generator[Scene]:
    """The scene in a new folder, or in and beside this empty one."""
    with tempfile.TemporaryDirectory(prefix="handrail-demo-", ignore_cleanup_errors=True) as base:
        project = project or Path(base).resolve() / "orchard"
        scene = Scene(project, project.parent / "elsewhere")
        scene.project.mkdir(exist_ok=True)
        (scene.project / "README.md").write_text(README)
        (scene.project / "apples.py").write_text(APPLES)
        (scene.project / "gate.py").write_text(GATE)
        (scene.elsewhere / "old-harvests").mkdir(parents=True)
        (scene.elsewhere / "old-harvests" / "last-year.txt").write_text("19 apples\n")
        yield scene


COUNTER = 'i=0; while [ $i -lt 3600 ]; do i=$((i+1)); echo "tick $i"; sleep 1; done'
READING = ("ls -l", "grep -n TODO apples.py", "ls cherries.py")
"""Commands that only read; the last one fails."""
FLOOD = "seq -f 'a line of output, one of very many: %06.0f' 1 120000"
"""About 5 MB of output."""


Trust = Callable[[Path], bool]


def run_story(
    seconds: float, print_line: Print, trust: Trust = lambda _: False, project: Path | None = None
) -> list[str]:
    """Play the script for at most `seconds`; returns the calls that still wait for a person.

    `trust` is called with the project's folder before the agent connects; it returns whether the folder is trusted.
    `project` is an empty folder to work in, instead of a new one.
    """
    story = _Story(seconds, print_line, trust, project)
    try:
        anyio.run(story.play)
    except KeyboardInterrupt:
        print_line("\nThe agent leaves.")
    return list(story.left)


class _Story:
    """One run of the script."""

    def __init__(self, seconds: float, print_line: Print, trust: Trust, project: Path | None) -> None:
        self._seconds = seconds
        self._project = project
        self._print = print_line
        self._trust = trust
        self.left: set[str] = set()
        """Calls that were handed back and are still open."""

    async def play(self) -> None:
        with make_scene(self._project) as scene:
            if self._trust(scene.project):
                self._print("\nIts folder is trusted for the demo, so commands that only read ask nobody.")
            try:
                async with open_door(scene.project) as client:
                    with anyio.move_on_after(self._seconds) as limit:
                        await self._play_acts(Agent(client, self._print, self.left), scene)
                if limit.cancelled_caught:
                    self._print("Time is up: the agent leaves, and what it still waited for is cancelled.")
            except* DoorClosed:
                self._print(str(DoorClosed()))

    async def _play_acts(self, agent: Agent, scene: Scene) -> None:
        self._print(f"\nAn agent, “handrail demo”, works in {scene.project}.")
        await self._read(agent)
        self._print("\nNow it asks for three things at once; each waits for you under “Needs you”:")
        self._print("  · a counter that never ends:  allow it, watch it, then press Complete ▾ or Cancel")
        self._print(
            "  · an edit:                    keep or reject each of its three hunks, then send the review"
        )
        self._print("  · deleting outside its work:  high risk; deny it, and tell the agent why")
        self._print("Ctrl-C ends the demo.\n")
        async with anyio.create_task_group() as group:
            group.start_soon(self._count, agent)
            group.start_soon(self._edit, agent)
            group.start_soon(self._stray, agent, scene)
        await self._repeat(agent)
        await play_terminal_act(agent, self._patience())
        self._print(
            "\nEvery call has its outcome. “Recent” on the page and `handrail calls` keep the record."
        )

    async def _read(self, agent: Agent) -> None:
        """Reads inside the workspace, which need no approval; in a trusted folder, commands that only read neither."""
        self._print("\nIt reads; no approval is needed, and it is recorded all the same:")
        await agent.do("looking around", "list_files")
        await agent.do("reading apples.py", "read_file", path="apples.py")
        await agent.do("searching for TODO", "search_content", pattern="TODO")
        await agent.do("reading a file that is not there", "read_file", path="cherries.py")
        for line in READING:
            await agent.do(f"`{line}`", "execute_command", command=line, wait_seconds=self._patience())
        await self._flood(agent)

    async def _count(self, agent: Agent) -> None:
        limits = {"wait_seconds": self._patience(), "timeout_seconds": self._patience()}
        reply = await agent.do("the counter", "execute_command", command=COUNTER, **limits)
        if "May still be running" in str(reply.data.get("message")):
            self._print("    It runs on, as Complete says; “Stop it” on its page ends it.")

    async def _edit(self, agent: Agent) -> None:
        edit = await agent.do("the edit", "apply_diff", path="apples.py", diff=EDIT)
        if review := edit.data.get("review"):
            self._print(f"    You kept {review['kept']} of its {review['hunks']} hunks; the agent was told.")
        if edit.status == "done":
            self._print(
                f"    `handrail undo {edit.data['call_id']}` takes it back, and shows what it would do first."
            )

    async def _flood(self, agent: Agent) -> None:
        reply = await agent.do("the flood", "execute_command", command=FLOOD, wait_seconds=self._patience())
        if reply.status == "done":
            shown = len(reply.text)
            self._print(
                f"    It printed {reply.data.get('output_bytes', 0):,} bytes; the agent was shown {shown:,}."
            )

    async def _stray(self, agent: Agent, scene: Scene) -> None:
        where = {"command": "rm -rf old-harvests", "cwd": str(scene.elsewhere)}
        await agent.do("deleting outside its work", "execute_command", **where, wait_seconds=self._patience())

    async def _repeat(self, agent: Agent) -> None:
        """Run the same command twice: the second time, a rule may allow it."""
        self._print(
            "\nThen it runs the same command twice: press “Always allow…” the first time, and a rule answers"
        )
        self._print("the second. “Rules” on the page, or `handrail rules`, shows it, and takes it back:")
        line = {"command": f"{python_command()} apples.py", "wait_seconds": self._patience()}
        await agent.do("counting the apples", "execute_command", **line)
        await agent.do("counting them again", "execute_command", **line)

    def _patience(self) -> float:
        return min(3600.0, self._seconds + 60)


QUESTIONS_PROGRAM = "the program with a question"
SECRET_SECONDS = 60.0
"""Seconds that the agent waits for input that only a person may type."""
STAYS_SECONDS = 20.0
"""Seconds without output before the agent closes its terminal; longer than typing keeps an agent out."""
CLOSE_SECONDS = 5.0
"""Bounds the closing of the terminal when the demo is interrupted."""


async def play_terminal_act(agent: Agent, patience: float) -> None:
    """Play the act with a shared terminal; `patience` bounds each call, in seconds."""
    agent.say(
        "\nLast, it opens a terminal that stays; “Terminals” on the page shows it live, and you may type there:"
    )
    agent.say("  · a line typed into its shell:  it asks, and the card shows which program will read it")
    agent.say("  · a program with a question:    what is typed is hidden, so the answer is yours alone\n")
    opened = await agent.do("opening the terminal", "create_tracked_terminal", name="orchard")
    terminal = opened.data.get("terminal_id")
    if opened.status != "done" or not terminal:
        return
    try:
        await _Visit(agent, str(terminal), patience).play()
    except BaseException:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(DoorClosed):
            await agent.quietly("close_terminal", terminalId=terminal)
        raise


class _Visit:
    """The calls in one terminal, from its first line to its end."""

    def __init__(self, agent: Agent, terminal: str, patience: float) -> None:
        self._agent = agent
        self._terminal = terminal
        self._patience = patience

    async def play(self) -> None:
        unanswered = await self._await_answer()
        if await self._close() and unanswered is not None:
            await self._agent.go_on(QUESTIONS_PROGRAM, unanswered)

    async def _line(self, what: str, command: str) -> Reply:
        arguments = {"command": command, "terminal_id": self._terminal, "wait_seconds": self._patience}
        return await self._agent.do(what, "execute_command", **arguments)

    async def _await_answer(self) -> Reply | None:
        """Run the program, and wait for the person's answer; returns the call if it stays unanswered."""
        reply = await self._line(QUESTIONS_PROGRAM, f"{python_command()} gate.py")
        return await self._wait_for_person(reply) if _asks(reply) else None

    async def _wait_for_person(self, reply: Reply) -> Reply | None:
        say = self._agent.say
        say(f"    It asks: “{_prompt(reply)}” What is typed there is hidden, so no agent may type it.")
        say(f"    You may: on the page, or elsewhere with `handrail terminal send {self._terminal} WORD`.")
        say(f"    It is recorded nowhere. The agent waits {SECRET_SECONDS:.0f} s, then goes on without.")
        with anyio.move_on_after(SECRET_SECONDS):
            while _asks(reply):
                reply = await self._agent.go_on(QUESTIONS_PROGRAM, reply)
            return None
        say("    Nobody typed it; the agent goes on without.")
        return reply

    async def _close(self) -> bool:
        """Close the terminal; False if the person has taken it over."""
        say = self._agent.say
        say(f"    The agent closes the terminal once it has been quiet for {STAYS_SECONDS:.0f} s.")
        say("    Try it on the page until then; after “Take over” it is yours, and stays.")
        quiet = {"terminalId": self._terminal, "until": "idle", "value": STAYS_SECONDS}
        await self._agent.quietly("wait_for_terminal", **quiet, timeout_seconds=self._patience)
        closed = await self._agent.do("closing the terminal", "close_terminal", terminalId=self._terminal)
        if closed.status != "done":
            say(f"    `handrail terminal close {self._terminal}` ends it; its folder goes with the demo.")
            return False
        say(f"    {closed.text.partition(chr(10))[0]}")
        say(f"    What it printed is kept: `handrail terminal read {self._terminal}`.")
        return True


def python_command() -> str:
    """The Python command, as a person would type it if `python3` is on PATH."""
    return "python3" if shutil.which("python3") else shlex.quote(sys.executable)


def _asks(reply: Reply) -> bool:
    return reply.status == ASKS


def _prompt(reply: Reply) -> str:
    return str(reply.data[ASKS]["prompt"]).strip()
