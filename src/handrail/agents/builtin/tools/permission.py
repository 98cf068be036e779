"""Asking before somebody else's tool is used.

Owns what was allowed for the length of a session. Our own server's tools are not asked for here: its gate does that,
and nobody should be asked twice. It does not know how the question travels (voice.py).
"""

from collections import defaultdict

import anyio

from handrail.agents.builtin.tools.tool import Json, Result, Running, Shown

_DENIED = "The person denied this call; it was not made. Do not try the same by another way: go on without it, or ask them."
_CANCELLED = "The question was taken back before anybody answered; the call was not made."


class Permission:
    """One session's answers."""

    def __init__(self) -> None:
        self._always: set[str] = set()
        self._asking: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def refusal(self, tool: str, shown: Shown, input: Json, call: Running) -> Result | None:
        """None where the call may be made, now that a person or the host's rules said so; else its result.

        One question for a tool at a time, so that "always" answers those that wait behind it too.
        """
        async with self._asking[tool]:
            if tool in self._always:
                return None
            answer = await call.voice.ask(call.id, shown, input)
            if answer == "always":
                self._always.add(tool)
        match answer:
            case "allowed" | "always":
                return None
            case "denied":
                return Result(text=_DENIED, failed=True, ended="denied")
            case "cancelled":
                return Result(text=_CANCELLED, failed=True, ended="cancelled")
