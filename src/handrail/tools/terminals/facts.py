"""What is told of a terminal: its facts as data, and as a line.

Owns the names of these facts. It does not look at terminals (known.py) and reads no output.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from handrail.store.value import Json, Owner
from handrail.terminal.shell_marks import Command
from handrail.terminal.terminal import Asks
from handrail.tools.answer import brief
from handrail.tools.terminals.known import Known

LAST_COMMANDS = 10
"""Of a shell's commands that are told with it."""


def facts(known: Known, commands: Sequence[Command], *, private: bool) -> Json:
    """All there is to tell; what is `private` to another workspace is what it shows and runs."""
    live = known.running
    seen = live and live.seen
    told: Json = {
        "id": known.id,
        "name": known.name,
        "kind": known.of,
        "shell": known.argv[0] if known.argv else "",
        "cwd": known.cwd,
        "pid": known.pid,
        "running": live is not None,
        "exit_code": known.exit and known.exit.code,
        "signal": known.exit and known.exit.signal,
        "created_at": known.opened_at,
        "last_output_at": _ms(live.last_output_at) if live else known.tail.time_of(known.tail.end),
        "bytes": known.tail.end,
        "size": list[JsonValue](known.size),
        "owner": owner(known.owner),
        "busy": seen.busy if seen else None,
        "foreground": {"pid": seen.foreground.pid, "name": seen.foreground.name}
        if seen and seen.foreground
        else None,
        "taken_over_by": live.taken.by if live and live.taken else None,
        "forgotten": known.forgotten,
    }
    if not private:
        told["waiting_for_input"] = asking(live.asks) if live and live.asks else None
        told["commands"] = [command(item) for item in commands[-LAST_COMMANDS:]]
    return told


def line(told: Json) -> str:
    """One terminal in a list."""
    state = ending_of(told)
    if told["running"]:
        state = _doing(told)
    return f"{told['id']}  {brief(str(told['name']), 30)}  {state}  pid {told['pid']}  {told['cwd']}{_last(told)}"


def ending_of(told: Json) -> str:
    if told["exit_code"] is not None:
        return f"exit code {told['exit_code']}"
    return f"ended by {told['signal']}" if told["signal"] else "ended"


def owner(owner: Owner) -> Json:
    return {"person": owner.person, "name": owner.name, "workspace": owner.workspace}


def asking(asks: Asks) -> Json:
    return {"prompt": asks.prompt, "sure": asks.sure, "secret": asks.secret}


def command(item: Command) -> Json:
    return {
        "line": item.line,
        "exit_code": item.exit_code,
        "duration_ms": item.duration_ms,
        "running": item.end is None,
    }


def _doing(told: Json) -> str:
    asks = told.get("waiting_for_input")
    if isinstance(asks, dict):
        return f"waiting for input: {brief(str(asks['prompt']), 60)}"
    if told["taken_over_by"]:
        return f"running, taken over by {told['taken_over_by']}"
    runs = told["foreground"]
    return f"running {runs['name']}" if told["busy"] and isinstance(runs, dict) else "idle"


def _last(told: Json) -> str:
    commands = told.get("commands")
    if not isinstance(commands, list) or not commands or not isinstance(last := commands[-1], dict):
        return ""
    code = "runs" if last["running"] else f"exit code {last['exit_code']}"
    return f"  last: {brief(str(last['line'] or ''), 50)} ({code})"


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
