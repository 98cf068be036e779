"""A scripted model server on loopback that speaks the providers' HTTP APIs.

It serves Anthropic's messages, OpenAI's chat completions and, in essence, OpenAI's responses and Google's
generateContent, with keep-alive connections. It answers 400 where a provider would. It records each request, its
connection, and how each answer and connection ended, with times. `script.py` describes the scripts.

    with model_server() as model:
        model.play(Turn("Hello."))            # or script(Turn("Hello.")) as the prompt
        ...                                   # ANTHROPIC_BASE_URL=model.url, OPENAI_BASE_URL=f"{model.url}/v1",
                                              # GOOGLE_GEMINI_BASE_URL=model.url
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
from tests.support.model_server.http import Connection, Http, ModelRequestRecord
from tests.support.model_server.script import Plays, Turn

PATIENCE = 10.0
"""Seconds for something to be asked of it; only a fault reaches this."""


@dataclass
class ModelServer:
    """The server, and the requests it received."""

    url: str
    requests: list[ModelRequestRecord] = field(default_factory=list[ModelRequestRecord])
    """All that wanted an answer, in order."""
    refused: list[str] = field(default_factory=list[str])
    """Why requests were refused that no provider would take. Who talks to models rightly leaves this empty."""
    strange: list[str] = field(default_factory=list[str])
    """Requests for something that it does not have."""
    connections: list[Connection] = field(default_factory=list[Connection])
    models: list[str] = field(default_factory=lambda: ["scripted"])
    """The models it lists."""
    key: str | None = None
    """Where it is set, requests with another are refused with 401."""
    silent: threading.Event = field(default_factory=threading.Event)
    """Set while a scripted silence lasts."""
    left: threading.Event = field(default_factory=threading.Event)
    """Set once a client disconnected before the end."""
    plays: Plays = field(default_factory=Plays)
    gone_on: dict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))

    def play(self, *turns: Turn, marker: str = "") -> None:
        """Queue turns for whatever is asked next; with a marker, by a conversation that has it in its words."""
        self.plays.add(turns, marker)

    def let_go(self, hold: str) -> None:
        """Go on with the turns that hold on by this name, and those to come."""
        self.gone_on[hold].set()

    @property
    def asked(self) -> list[ModelRequestRecord]:
        """The requests of conversations: not for a title or the like."""
        return [each for each in self.requests if not each.aside]

    @property
    def open(self) -> list[Connection]:
        return [each for each in self.connections if each.closed is None]

    async def endings(self) -> list[str]:
        """How each answer ended, once all have: a client may have the last byte before we know that it has."""
        await self.until(lambda: all(each.ended for each in self.asked))
        return [each.ended for each in self.asked]

    async def until(self, holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
        with anyio.fail_after(seconds):
            while not holds():  # noqa: ASYNC110 - its threads ring no bell for us
                await anyio.sleep(0.002)


@contextmanager
def model_server(port: int = 0) -> Generator[ModelServer]:
    with Http(port) as http:
        server = http.model = ModelServer(f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
            http.hang_up()
