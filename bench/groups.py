"""The groups of the bench, in the order in which they run, and the selection by name."""

from collections.abc import Sequence

from bench.runner import Group, module_group

GROUPS = (
    module_group("door", "Start of `handrail mcp`, until it has listed its tools.", "bench.door"),
    module_group("hook", "A client's hook, until it has its answer; beside `true`.", "bench.hook"),
    module_group("restart", "A daemon that was killed, until the next one is ready.", "bench.restart"),
    module_group("read", "read_file beside a bare echo, write_file beside two commits.", "bench.file_tools"),
    module_group("command", "execute_command of `true`, beside a bare PTY child.", "bench.command"),
    module_group("relay", "Calls forwarded to other MCP servers, beside other relays.", "bench.relay"),
    module_group("rules", "Decisions under 200 rules, and their share of a call.", "bench.rules"),
    module_group("storm", "1 GB of output through a terminal, beside a bare read loop.", "bench.storm"),
    module_group("cancel", "A person's Cancel, until the client has its result.", "bench.cancel"),
    module_group("trees", "Process trees that resist, stopped; beside killpg.", "bench.process_tree"),
    module_group("terminals", "100 terminals that print; the memory of an idle one.", "bench.terminals"),
    module_group("flood", "Clients that never read, and sessions never closed.", "bench.flood"),
    module_group("idle", "An idle daemon: wake-ups, processor time, memory.", "bench.idle"),
    module_group("output", "Reads and searches of 64 MB of terminal output, beside rg.", "bench.output"),
    module_group("approvals", "The list of 1000 open approvals.", "bench.approvals"),
    module_group("page", "The web page in Chromium: streamed words, a long thread.", "bench.page"),
    module_group(
        "editor", "The VS Code extension: its size, its activation, a call in the sidebar.", "bench.editor"
    ),
    module_group(
        "table", "The table of 100000 calls in Chromium: first rows, search, scroll.", "bench.call_table"
    ),
    module_group("messages", "Search over 100000 messages.", "bench.messages"),
    module_group(
        "growth", "A million events: start, lists, new calls. 10000 calls. 50 clients.", "bench.growth"
    ),
    module_group("agent", "Our own agent: its start, its loop, its cancel.", "bench.agent"),
    module_group(
        "own-agent", "Our own agent: its first prompt, and its process when idle.", "bench.own_agent"
    ),
)


class UnknownGroup(Exception):
    """Names of no group."""

    def __init__(self, names: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(f"There is no group {', '.join(names)} here. Known groups: {', '.join(known)}.")


def select_groups(names: Sequence[str], groups: Sequence[Group] = GROUPS) -> list[Group]:
    """The named groups; all where no name is given. Raises UnknownGroup."""
    by_name = {group.name: group for group in groups}
    return [by_name[name] for name in select_names(names, list(by_name))]


def select_names(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """The names in the given order, each once; all known ones where none is given. Raises UnknownGroup."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UnknownGroup(unknown, known)
    return list(dict.fromkeys(names or known))


def list_groups(groups: Sequence[Group] = GROUPS) -> str:
    width = max(len(group.name) for group in groups)
    return "\n".join(f"{group.name.ljust(width)}  {group.summary}" for group in groups)
