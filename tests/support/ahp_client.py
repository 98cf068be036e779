"""A client of the Agent Host Protocol over a real WebSocket, which keeps each channel's state as VS Code does.

It applies the server's actions to the snapshots with the reducers. `same` compares the result with a fresh snapshot.
"""

import base64
import itertools
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from tests.support.daemon_home import BOUND, Home
from tests.support.person_client import Person
from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed

from handrail.server.ahp.reducers import (
    Reducer,
    reduce_changeset,
    reduce_chat,
    reduce_root,
    reduce_session,
    reduce_terminal,
)

Obj = dict[str, Any]
ROOT = "ahp-root://"
AHP = "[ahp]\nenabled = true\n"
VERSIONS = ["0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"]


class AhpError(Exception):
    """A request failed with this JSON-RPC error."""

    def __init__(self, error: Obj) -> None:
        self.code: int = error["code"]
        super().__init__(error["message"])


class AhpClient:
    """One connection."""

    def __init__(self, socket: ClientConnection, client: str = "test-client") -> None:
        self.socket = socket
        self.client = client
        self.states: dict[str, Obj] = {}
        self.envelopes: list[Obj] = []
        self.notices: list[Obj] = []
        self.seq = 0
        """The newest number that was seen."""
        self._numbers = itertools.count(1)
        self._answers: dict[int, Obj] = {}
        self._bell = anyio.Event()

    async def run(self) -> None:
        """Receive until the connection ends."""
        with suppress(ConnectionClosed):
            async for text in self.socket:
                self._take(json.loads(text))
                bell, self._bell = self._bell, anyio.Event()
                bell.set()

    def _take(self, message: Obj) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
            result: Obj = message.get("result") or {}
            if "snapshot" in result:
                self.take_snapshot(result["snapshot"])
            for snapshot in result.get("snapshots", ()):
                self.take_snapshot(snapshot)
        elif message["method"] == "action":
            self._apply(message["params"])
        else:
            self.notices.append(message)

    def take_snapshot(self, snapshot: Obj) -> None:
        self.states[snapshot["resource"]] = snapshot["state"]
        self.seq = max(self.seq, snapshot["fromSeq"])

    def _apply(self, envelope: Obj) -> None:
        self.envelopes.append(envelope)
        self.seq = max(self.seq, envelope["serverSeq"])
        uri = envelope["channel"]
        if uri in self.states and "rejectionReason" not in envelope:
            self.states[uri] = reducer_of(uri)(self.states[uri], envelope["action"])

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until the condition gives something true."""
        with anyio.fail_after(BOUND):
            while not (found := condition()):
                await self._bell.wait()
        return found

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request, and return its result. Raises AhpError."""
        number = next(self._numbers)
        await self.send({"id": number, "method": method, "params": {"channel": ROOT, **params}})
        answer = await self.until(lambda: self._answers.get(number))
        if "error" in answer:
            raise AhpError(answer["error"])
        return answer["result"]

    async def send(self, message: Obj) -> None:
        await self.socket.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def initialize(self, *subscriptions: str) -> Obj:
        wanted = list(subscriptions or (ROOT,))
        return await self.ask(
            "initialize", protocolVersions=VERSIONS, clientId=self.client, initialSubscriptions=wanted
        )

    async def subscribe(self, uri: str) -> Obj:
        return (await self.ask("subscribe", channel=uri))["snapshot"]["state"]

    async def act(self, uri: str, type: str, **fields: Any) -> Obj:
        """Dispatch an action; its envelope, once the server sent it back."""
        number = next(self._numbers)
        action = {"type": type, **fields}
        params = {"channel": uri, "clientSeq": number, "action": action}
        await self.send({"method": "dispatchAction", "params": params})
        origin = {"clientId": self.client, "clientSeq": number}
        return await self.until(
            lambda: next((one for one in self.envelopes if one.get("origin") == origin), None)
        )

    async def rejected(self, uri: str, type: str, **fields: Any) -> str:
        """Dispatch an action that is rejected; the reason."""
        return (await self.act(uri, type, **fields))["rejectionReason"]

    async def sessions(self) -> list[Obj]:
        return (await self.ask("listSessions"))["items"]

    async def begin(self, provider: str, folder: str, text: str, session: str = "s1") -> "AhpChat":
        """Create a session and send its first prompt."""
        uri = f"{provider}:/{session}"
        await self.ask(
            "createSession", channel=uri, provider=provider, workingDirectories=[f"file://{folder}"]
        )
        chat = await self.open(uri)
        await chat.prompt(text)
        return chat

    async def open(self, session: str) -> "AhpChat":
        """Subscribe to a session and its chat."""
        state = await self.subscribe(session)
        await self.subscribe(state["defaultChat"])
        return AhpChat(self, session, state["defaultChat"])

    async def same(self, uri: str) -> bool:
        """Whether the state here is that of a fresh snapshot."""
        kept = self.states[uri]
        return await self.subscribe(uri) == kept


class AhpChat:
    """A chat, as a client has it."""

    def __init__(self, client: AhpClient, session: str, uri: str) -> None:
        self.client, self.session, self.uri = client, session, uri
        self._prompts = itertools.count(1)

    @property
    def state(self) -> Obj:
        return self.client.states[self.uri]

    async def prompt(self, text: str) -> str:
        turn = f"request_{self.client.client}-{next(self._prompts)}"
        envelope = await self.client.act(
            self.uri,
            "chat/turnStarted",
            turnId=turn,
            startedAt="2026-11-18T12:00:00.000Z",
            message={"text": text, "origin": {"kind": "user"}},
        )
        assert "rejectionReason" not in envelope, envelope
        return turn

    @property
    def parts(self) -> list[Obj]:
        turn = self.state.get("activeTurn") or self.state["turns"][-1]
        return turn["responseParts"]

    def calls(self, *statuses: str) -> list[Obj]:
        found = [part["toolCall"] for part in self.parts if part["kind"] == "toolCall"]
        return [call for call in found if not statuses or call["status"] in statuses]

    @property
    def text(self) -> str:
        return "".join(part["content"] for part in self.parts if part["kind"] == "markdown")

    async def question(self) -> Obj:
        """The call that waits for an answer, once there is one."""
        found = await self.client.until(lambda: self.calls("pending-confirmation"))
        return found[0]

    async def over(self) -> Obj:
        """The last turn, once no turn is active."""
        await self.client.until(lambda: self.state["turns"] and "activeTurn" not in self.state)
        return self.state["turns"][-1]

    async def confirm(self, call: Obj, option: str) -> Obj:
        approved = option != "deny"
        more = {"confirmed": "user-action"} if approved else {"reason": "denied"}
        return await self.client.act(
            self.uri,
            "chat/toolCallConfirmed",
            turnId=self.state["activeTurn"]["id"],
            toolCallId=call["toolCallId"],
            approved=approved,
            selectedOptionId=option,
            **more,
        )


def reducer_of(uri: str) -> Reducer:
    schemes: dict[str, Reducer] = {
        "ahp-root": reduce_root,
        "ahp-chat": reduce_chat,
        "ahp-changeset": reduce_changeset,
        "ahp-terminal": reduce_terminal,
        "agenthost-terminal": reduce_terminal,
    }
    return schemes.get(uri.partition(":")[0], reduce_session)


def chat_uri(session: str) -> str:
    code = base64.urlsafe_b64encode(session.encode()).decode().rstrip("=")
    return f"ahp-chat://default/{code}"


@asynccontextmanager
async def ahp_client(home: Home, client: str = "test-client") -> AsyncGenerator[AhpClient]:
    """A client on the home's unix socket, once that listens; not initialized."""
    await _listening(home)
    # As VS Code's server does: no Origin, no subprotocol.
    async with (
        unix_connect(str(home.places.ahp_socket), uri="ws://127.0.0.1:0/", max_size=None) as socket,
        running(AhpClient(socket, client)) as connected,
    ):
        yield connected


@asynccontextmanager
async def tcp_client(port: int, token: str, client: str = "tcp-client") -> AsyncGenerator[AhpClient]:
    async with (
        connect(f"ws://127.0.0.1:{port}/?tkn={token}", max_size=None) as socket,
        running(AhpClient(socket, client)) as connected,
    ):
        yield connected


@asynccontextmanager
async def running(client: AhpClient) -> AsyncGenerator[AhpClient]:
    async with anyio.create_task_group() as group:
        group.start_soon(client.run)
        yield client
        group.cancel_scope.cancel()


async def _listening(home: Home) -> None:
    """Wait for a listener: the socket of a daemon that was killed is still there."""
    with anyio.fail_after(BOUND):
        while not _is_listening(home.places.ahp_socket):  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.02)


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


async def pair(person: Person) -> None:
    """Pair this process, which is connected, as an editor."""
    for editor in await person.get("editors"):
        if editor["state"] != "paired":
            response = await person.ask("POST", f"editors/{editor['id']}/pair", {"number": editor["number"]})
            response.raise_for_status()
