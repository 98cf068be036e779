"""ntfy and webhook: a real receiver on loopback gets the risk and a link, nothing of the call, and is tried again."""

import json
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import anyio
import pytest
from pydantic import ValidationError
from tests.support.actors import ANN
from tests.support.daemon_home import BOUND
from tests.support.gate_world import GateWorld, gate_world, make_answer
from tests.support.sample_tools import Write

from handrail.config import NotifySection
from handrail.daemon.http_notifications import HttpNotifier, is_quiet
from handrail.gate import person_actions

pytestmark = pytest.mark.anyio


@dataclass
class Receiver:
    """What came, and with which status the next requests are answered."""

    url: str = ""
    came: Queue[tuple[str, dict[str, str], bytes]] = field(
        default_factory=Queue[tuple[str, dict[str, str], bytes]]
    )
    statuses: list[int] = field(default_factory=list[int])

    async def next(self) -> tuple[str, dict[str, str], bytes]:
        return await anyio.to_thread.run_sync(lambda: self.came.get(timeout=BOUND), abandon_on_cancel=True)


@pytest.fixture
def receiver() -> Generator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.came.put((self.path, dict(self.headers), body))
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield receiver
    server.shutdown()
    thread.join()
    server.server_close()


@asynccontextmanager
async def told_by(path: Path, settings: NotifySection, **how: Any) -> AsyncGenerator[GateWorld]:
    async with gate_world(path, Write()) as here, anyio.create_task_group() as group:
        pace: dict[str, Any] = {"burst": 0.0, "retry": (0.01, 0.01), **how}
        looking = pace.pop("looking", lambda: 0)
        notifier = HttpNotifier(here.gate, settings, looking, lambda: "https://box:7434", **pace)
        group.start_soon(notifier.run)
        await anyio.wait_all_tasks_blocked()
        yield here
        group.cancel_scope.cancel()


async def test_both_get_the_risk_and_a_link_and_nothing_of_the_call(
    tmp_path: Path, receiver: Receiver
) -> None:
    settings = NotifySection(
        ntfy=f"{receiver.url}/topic", webhook=f"{receiver.url}/hook?key=1", after_seconds=0
    )
    async with told_by(tmp_path, settings) as here:
        call = await here.client("write", {"word": "secret-word"}).call()
        came = {
            path: (headers, body) for path, headers, body in [await receiver.next(), await receiver.next()]
        }
    link = f"https://box:7434/c/{call.id}"
    headers, body = came["/topic"]
    assert (body, headers["Click"], headers["Priority"]) == (
        b"A call needs you, medium risk",
        link,
        "default",
    )
    _, body = came["/hook?key=1"]
    assert json.loads(body) == {"title": "A call needs you, medium risk", "risk": "medium", "link": link}
    assert "secret-word" not in str(came)


async def test_a_receiver_that_fails_is_tried_again_and_then_given_up(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses = [503, 429, 200]
    async with told_by(tmp_path, NotifySection(webhook=f"{receiver.url}/hook", after_seconds=0)) as here:
        await here.client("write", {"word": "a"}).call()
        bodies = [(await receiver.next())[2] for _ in range(3)]
        assert len(set(bodies)) == 1
        receiver.statuses = [503, 503, 503]
        await here.client("write", {"word": "b"}).call()
        for _ in range(3):
            await receiver.next()
        await here.client("write", {"word": "c"}).call()
        assert b"calls need you" not in (await receiver.next())[2]
    assert [record.message for record in caplog.records if "webhook" in record.message] == [
        "no message could be sent by webhook: status 503"
    ]


async def test_a_redirect_is_not_followed_and_not_tried_again(tmp_path: Path, receiver: Receiver) -> None:
    receiver.statuses = [302]
    async with told_by(tmp_path, NotifySection(webhook=f"{receiver.url}/hook", after_seconds=0)) as here:
        await here.client("write", {"word": "a"}).call()
        assert (await receiver.next())[0] == "/hook"
        await here.client("write", {"word": "b"}).call()
        assert (await receiver.next())[0] == "/hook"


@pytest.mark.parametrize("why", ["looking", "held", "answered"])
async def test_nothing_is_sent_if_somebody_looks_or_has_answered_or_has_not_accepted_the_address(
    tmp_path: Path, receiver: Receiver, why: str
) -> None:
    settings = NotifySection(webhook=f"{receiver.url}/hook", after_seconds=0.3 if why == "answered" else 0)
    asked = anyio.Event()

    def look() -> bool:
        asked.set()
        return True

    how: dict[str, Any] = {why: look} if why != "answered" else {}
    async with told_by(tmp_path, settings, **how) as here:
        client = here.client("write", {"word": "first"})
        call = await client.call()
        approval = await here.question(call)
        if why == "answered":
            await person_actions.answer(
                here.gate, approval, make_answer("deny", by=str(ANN)), approval.digest
            )
            await here.client("write", {"word": "second"}).call()
            assert call.id.encode() not in (await receiver.next())[2]
        else:
            await asked.wait()
            await anyio.wait_all_tasks_blocked()
    assert receiver.came.empty()


def test_quiet_hours_may_go_over_midnight() -> None:
    assert [hour for hour in range(24) if is_quiet("22-7", hour)] == [0, 1, 2, 3, 4, 5, 6, 22, 23]
    assert [hour for hour in range(24) if is_quiet("9-11", hour)] == [9, 10]
    assert not any(is_quiet("", hour) for hour in range(24))


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "http://user:pw@host/x", "http://", "ftp://x", "http://a b"]
)
def test_only_plain_http_addresses_are_settings(url: str) -> None:
    with pytest.raises(ValidationError):
        NotifySection(webhook=url)
