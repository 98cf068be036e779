"""Tools that do the same thing by another door: a rule about one of them is about the others too.

Owns which those are, by what is claimed: work that an agent does itself is held to the rules about our own tools. It
does not know what a rule says (rule.py).
"""

from handrail.store.value import Action

AGENT_WORK = "agent_work"
"""The tool by which agents ask about work of their own."""
COMMANDS = "execute_command"
"""The tool whose `pattern` is a command; that of any other is a path."""
_WRITERS = ("write_file", "edit_file", "apply_diff")
_ALIKE: dict[str, dict[Action, tuple[str, ...]]] = {
    AGENT_WORK: {
        "run": (COMMANDS,),
        "connect": (COMMANDS,),
        "read": ("read_file",),
        "write": _WRITERS,
        "delete": _WRITERS,
    },
    "read_text_file": {"read": ("read_file",)},
}


def alike(tool: str, action: Action) -> tuple[str, ...]:
    """The other tools whose rules are about this action of a tool."""
    found = _ALIKE.get(tool)
    return () if found is None else found.get(action, ())


def commonly(tool: str, action: Action) -> str:
    """The tool that a new rule about this had best name, so that it holds for all that are alike."""
    return COMMANDS if COMMANDS in alike(tool, action) else tool
