"""The hook dialects by the name of the client, as in `handrail hook NAME`."""

from collections.abc import Mapping

from handrail.clients.claude import ClaudeHooks
from handrail.clients.cline import ClineHooks
from handrail.clients.codex import CodexHooks
from handrail.clients.copilot import CopilotHooks
from handrail.clients.cursor import CursorHooks, WindsurfHooks
from handrail.clients.editors import VscodeHooks
from handrail.clients.gemini import GeminiHooks, QwenHooks
from handrail.clients.hook_event import HookDialect
from handrail.clients.kimi import GooseHooks, KimiHooks
from handrail.clients.opencode import OpencodeHooks

_DIALECTS: tuple[HookDialect, ...] = (
    ClaudeHooks(),
    CodexHooks(),
    GeminiHooks(),
    OpencodeHooks(),
    QwenHooks(),
    CopilotHooks(),
    KimiHooks(),
    ClineHooks(),
    CursorHooks(),
    WindsurfHooks(),
    GooseHooks(),
    VscodeHooks(),
)
DIALECTS: Mapping[str, HookDialect] = {dialect.name: dialect for dialect in _DIALECTS}
