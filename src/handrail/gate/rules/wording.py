"""Rules in words, for people: on cards, in lists, in refusals."""

from handrail.store.value import Rule

_VERB = {"allow": "allows", "ask": "asks about", "deny": "refuses"}


def in_words(rule: Rule) -> str:
    """What a rule is about and where: ``git status …` in this project`."""
    by = f" by {rule.agent}" if rule.agent is not None else ""
    return f"{_about(rule)}{by} {_where(rule)}"


def why(rule: Rule) -> str:
    """Why a rule decided, as a sentence."""
    source = f" ({rule.source})" if rule.source else ""
    note = f" {rule.note.rstrip('.')}." if rule.note else ""
    return f"Rule {rule.id} {_VERB[rule.effect]} {in_words(rule)}{source}.{note}"


def _about(rule: Rule) -> str:
    tool = f"{rule.tool}: " if rule.tool not in (None, "execute_command") else ""
    if rule.command is not None:
        exact = rule.command.removesuffix("$").rstrip()
        return f"{tool}`{exact}` and nothing more" if exact != rule.command else f"{tool}`{rule.command} …`"
    if rule.path is not None:
        return f"{tool or 'files: '}`{rule.path}`"
    if rule.host is not None:
        return f"{tool}connecting to `{rule.host}`"
    if rule.tool is not None:
        return f"all of {rule.tool}"
    return f"all of the server {rule.server}" if rule.server is not None else "everything"


def _where(rule: Rule) -> str:
    match rule.scope:
        case "session":
            return "in this session"
        case "project":
            return "in this project"
        case "user":
            return "in every trusted folder" if rule.effect == "allow" else "everywhere"
