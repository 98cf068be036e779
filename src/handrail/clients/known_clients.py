"""The clients that Handrail can be connected to, by name as in `handrail connect NAME`. `hooks` lists their dialects."""

from collections.abc import Mapping

from handrail.clients.claude import Claude
from handrail.clients.client_facts import Client
from handrail.clients.cline import Cline
from handrail.clients.code_server import CodeServer
from handrail.clients.codex import Codex
from handrail.clients.copilot import Copilot
from handrail.clients.cursor import Cursor, Windsurf
from handrail.clients.editors import JetBrains, VSCode, Zed
from handrail.clients.gemini import Gemini, Qwen
from handrail.clients.kimi import Goose, Kimi
from handrail.clients.opencode import OpenCode

_CLIENTS: tuple[Client, ...] = (
    Claude(),
    Codex(),
    Gemini(),
    OpenCode(),
    Qwen(),
    Copilot(),
    Kimi(),
    Cline(),
    Cursor(),
    Windsurf(),
    Goose(),
    VSCode(),
    Zed(),
    JetBrains(),
    CodeServer(),
)
_BY_NAME: Mapping[str, Client] = {client.name: client for client in _CLIENTS}
NAMES = tuple(_BY_NAME)


def find_client(name: str) -> Client:
    """The client of this name, which must be one of NAMES."""
    return _BY_NAME[name]
