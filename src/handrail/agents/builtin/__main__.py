"""`handrail agent`: our own agent as a program that speaks the Agent Client Protocol on standard input and output.

Owns the command line, and that nobody can read our memory from the first moment on: there will be keys in it.
"""

import sys
from collections.abc import Sequence

from handrail.hardening import hide_memory

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


def main(argv: Sequence[str]) -> int:
    """The exit status."""
    if argv:
        asked = argv[0] in ("-h", "--help")
        words = HELP if asked else f"handrail agent takes no {argv[0]!r}; `handrail agent --help` says more."
        print(words, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    hide_memory()
    from handrail.agents.builtin.hosted.running import run  # noqa: PLC0415 - not before memory is hidden

    return run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
