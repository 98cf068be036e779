"""An HTTP client signed in as a person.

It must connect to the daemon's socket before the test launches a door: after that the test counts as an agent, and a
process that an agent starts is not a person.
"""

import contextlib
import json
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any
from urllib.request import Request, urlopen

import httpx
from tests.support.daemon_home import BOUND, Home, eventually

from handrail.door.connect import connect, say_hello

Json = dict[str, Any]


class Person:
    """A person with a bearer that survives a restart of the daemon."""

    def __init__(self, home: Home, bearer: str) -> None:
        self.home = home
        self.bearer = bearer
        self._url = home.url
        self.patience = BOUND
        """Seconds to wait for a question: some agents take longer than others to start on a busy machine."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.bearer}"}

    async def ask(self, method: str, path: str, body: object = None, **query: Any) -> httpx.Response:
        # verify=False: loopback has no TLS, and loading the certificates takes longer than any request.
        async with httpx.AsyncClient(
            base_url=f"{self._url}/api/", headers=self.headers, timeout=BOUND, verify=False
        ) as http:
            return await http.request(method, path, json=body, params=query)

    async def get(self, path: str, **query: Any) -> Any:
        return (await self.ask("GET", path, **query)).raise_for_status().json()

    async def post(self, path: str, body: object = None, **query: Any) -> Any:
        return (await self.ask("POST", path, body, **query)).raise_for_status().json()

    async def call(self, id: str) -> Json:
        return await self.get(f"calls/{id}")

    async def settled(self, id: str) -> Json:
        """A call once it has an outcome."""

        async def look() -> Json | None:
            call = await self.call(id)
            return None if call["status"] in ("waiting", "running") else call

        return await eventually(look)

    async def stopped(self, id: str) -> Json:
        """A call once its work has really ended."""

        async def look() -> Json | None:
            call = await self.call(id)
            return call if call["stopped"] else None

        return await eventually(look)

    async def has_printed(self, call: str, more_than: int = 0) -> int:
        """Wait until a call's terminal holds more than so many bytes; how many it holds."""

        async def look() -> int | None:
            found = [one["bytes"] for one in await self.get("terminals") if one["call_id"] == call]
            return found[0] if found and found[0] > more_than else None

        return await eventually(look)

    async def has_terminal(self, call: str) -> Json:
        """Wait until the daemon has a call's terminal: its process is alive a moment before; the terminal."""

        async def look() -> Json | None:
            return next((one for one in await self.get("terminals") if one["call_id"] == call), None)

        return await eventually(look)

    async def question(self, about: str = "") -> Json:
        """An open approval whose title holds these words, once there is one."""

        async def look() -> Json | None:
            asked: list[Json] = await self.get("approvals", open=True)
            return next((approval for approval in asked if about in approval["title"]), None)

        return await eventually(look, self.patience)

    async def answer(self, approval: Json, answer: str, reason: str = "") -> httpx.Response:
        body = {"answer": answer, "digest": approval["digest"], "reason": reason}
        return await self.ask("POST", f"approvals/{approval['id']}/answer", body)

    async def allow(self, about: str = "") -> str:
        """Allow the question about this, when it comes; the id of its call."""
        approval = await self.question(about)
        (await self.answer(approval, "allow")).raise_for_status()
        return approval["call_id"]

    async def deny(self, about: str = "", reason: str = "") -> str:
        approval = await self.question(about)
        (await self.answer(approval, "deny", reason)).raise_for_status()
        return approval["call_id"]

    async def cancel(self, call: str) -> Json:
        return await self.post(f"calls/{call}/cancel")

    async def complete(self, call: str, **body: Any) -> Json:
        return await self.post(f"calls/{call}/complete", body)

    async def credential(self, workspace: str, name: str = "e2e") -> Json:
        return await self.post("credentials", {"name": name, "workspace": workspace})

    async def link(self, path: str = "/") -> str:
        """A fresh link that signs a page in."""
        url: str = (await self.post("code"))["url"]
        return url.replace("/#", f"{path}#", 1)


@contextmanager
def reader(home: Home) -> Generator[str]:
    """A bearer for watching, which every process of this user may have, for as long as its connection."""
    with closing(connect(home.places, start=False)) as sock:
        yield say_hello(sock, "read")["bearer"]


def person_of(home: Home) -> Person:
    """Greet as a person on the daemon's socket, and sign in with a code, so that a restart does not matter."""
    with closing(connect(home.places, start=False)) as sock:
        reply = say_hello(sock, "person")
        code = _post(reply["url"], "code", None, reply["bearer"])["url"].partition("#code=")[2]
        bearer: str = _post(reply["url"], "sign-in", {"code": code}, None)["bearer"]
    return Person(home, bearer)


def _post(url: str, path: str, body: object, bearer: str | None) -> Json:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {bearer}"} if bearer else {})
    request = Request(f"{url}/api/{path}", json.dumps(body).encode(), headers, method="POST")
    with urlopen(request, timeout=BOUND) as response:
        return json.load(response)


BETWEEN = 0.01
"""Seconds between two looks."""


@contextmanager
def allow_everything(person: Person) -> Generator[None]:
    """Allow every approval, in a background thread."""
    over = threading.Event()
    thread = threading.Thread(target=_allow, args=(person, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(BOUND)


def _allow(person: Person, over: threading.Event) -> None:
    url = f"{person.home.url}/api/approvals"
    with httpx.Client(headers=person.headers, timeout=BOUND) as http:
        while not over.wait(BETWEEN):
            with contextlib.suppress(httpx.TransportError):
                for asked in http.get(url, params={"open": True}).raise_for_status().json():
                    body = {"answer": "allow", "digest": asked["digest"]}
                    http.post(f"{url}/{asked['id']}/answer", json=body)
