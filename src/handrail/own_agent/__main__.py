"""`handrail agent`: run our own agent, an ACP program on standard input and output.

Hides its memory from other processes before it loads anything else: it will hold keys.
"""

import gc
import sys
from collections.abc import Sequence
from typing import cast

from handrail.hardening import hide_memory, ignore_plugins

HELP = """\
Examples:
  handrail agent                                   what an editor launches; it speaks on stdin and stdout
  handrail chat --agent handrail                   to talk with it here
  acpx --agent 'handrail agent' exec 'Say hello'
  "agent_servers": {"Handrail": {"type": "custom", "command": "handrail", "args": ["agent"]}}
                                                   in Zed's settings.json

Usage: handrail agent

Handrail's own coding agent, for editors and other programs that speak the Agent Client Protocol (version 1).

It needs a model: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GOOGLE_API_KEY, keep one with `handrail keys set`, or set
OPENAI_BASE_URL or OLLAMA_BASE_URL to a server of your own. HANDRAIL_MODEL=provider:name chooses one.
Its settings stand under [agent] in config.toml."""

UNUSED = ("trio", "httpx._main")
"""Modules that the HTTP packages import if they can, in a tenth of a second, and that this program does not use."""


def main(argv: Sequence[str]) -> int:
    """Run the program and return its exit status."""
    if argv:
        wants_help = argv[0] in ("-h", "--help")
        words = (
            HELP if wants_help else f"handrail agent takes no {argv[0]!r}; `handrail agent --help` says more."
        )
        print(words, file=sys.stdout if wants_help else sys.stderr)
        return 0 if wants_help else 2
    hide_memory()
    ignore_plugins()
    gc.disable()  # until the modules are loaded: it would take a seventh of that time, and find nothing to free
    for name in UNUSED:
        cast("dict[str, object]", sys.modules)[name] = None  # to import it fails, as if it were not installed
    from handrail.own_agent.acp_server import run  # noqa: PLC0415 - not before memory is hidden

    return run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
