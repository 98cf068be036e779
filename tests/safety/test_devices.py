"""The listener for paired devices: who reaches what, with the guard alone and with the real daemon over TLS."""

import base64
import contextlib
import hashlib
import ssl
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send
from tests.support.browser_keys import BrowserKey
from tests.support.daemon_home import BOUND, Home, free_port, running_daemon
from tests.support.mcp_client import agent
from tests.support.person_client import Person, person_of
from tests.support.route_table import Target, targets
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from handrail.server.access import Access, Client
from handrail.server.access import Person as Holder
from handrail.server.device_guard import MOST_ATTEMPTS, DeviceGuard
from handrail.server.guard import Guard
from handrail.server.sign_ins import MOST_MISSES
from handrail.store.journal import open_journal

pytestmark = pytest.mark.anyio

HOST = "192.168.1.20:7434"
ALL = targets()
SIGN_IN = ("/api/sign-in", "/api/sign-in/challenge", "/api/sign-in/key")


@dataclass
class Recorder:
    """In the place of the application: remembers what reached it."""

    seen: list[str] = field(default_factory=list[str])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(scope["path"])
        kind = "websocket.accept" if scope["type"] == "websocket" else "http.response.start"
        await send({"type": kind, "status": 200, "headers": []})


@dataclass
class Bench:
    recorder: Recorder
    device: DeviceGuard
    desk: Guard
    bearers: dict[str, str]
    limited: bool = False

    async def reaches(
        self, guard: Guard, target: Target, bearer: str, *, peer: str = "", **headers: str
    ) -> bool:
        self.recorder.seen.clear()
        given = {"host": HOST, "authorization": f"Bearer {self.bearers[bearer]}", **headers}
        scope: Scope = {
            "type": "websocket" if target.is_socket else "http",
            "path": target.path,
            "query_string": b"",
            "client": (peer or target.path, 1),
            "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in given.items()],
            **({"subprotocols": []} if target.is_socket else {"method": target.method}),
        }
        await guard(scope, _silent, _deaf)
        return bool(self.recorder.seen)


async def _silent() -> Message:
    raise AssertionError("a request is judged before its body is read")


async def _deaf(_message: Message) -> None:
    pass


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with open_journal(tmp_path / "handrail.db", tmp_path / "handrail.head") as journal:
        call = "c" * 43
        client = Client(credential="k1", name="agent", workspace="/w")
        access = Access(journal, [(hashlib.sha256(call.encode()).hexdigest(), client)], b"")
        at_desk = access.sign_ins.redeem(access.sign_ins.issue_code())
        paired = access.sign_ins.redeem(access.sign_ins.issue_pair_code(), device=True)
        assert not isinstance(at_desk, str)
        assert not isinstance(paired, str)
        grant = access.grant(Holder(place="command line", approves=True, ends=True))
        bearers = {"none": "w" * 43, "call": call, "command line": grant}
        bearers |= {"desk": at_desk[1], "device": paired[1]}
        recorder = Recorder()
        made = Bench(recorder, None, Guard(recorder, access, (HOST,)), bearers)  # type: ignore[arg-type]
        made.device = DeviceGuard(recorder, access, HOST, proxied=False, limited=lambda: made.limited)
        yield made


@pytest.mark.parametrize("bearer", ["none", "call", "command line", "desk"])
async def test_without_a_devices_bearer_only_files_and_the_sign_in_are_reached(
    bench: Bench, bearer: str
) -> None:
    for target in ALL:
        is_open = target.area == "page" and target.path != "/gallery"
        expected = is_open or (target.method == "POST" and target.path in SIGN_IN)
        assert await bench.reaches(bench.device, target, bearer) is expected, target


async def test_a_device_reaches_what_people_use_but_not_agents_and_not_who_may_decide(bench: Bench) -> None:
    kept = {"POST /api/code", "POST /api/down", "POST /api/credentials", "DELETE /api/credentials/{id}"}
    kept |= {"POST /api/policy/accept", "POST /api/policy/expect", "POST /api/editors/{id}/pair"}
    kept |= {"PUT /api/keys/{provider}", "DELETE /api/keys/{provider}"}
    kept |= {"POST /api/logins/{server}", "DELETE /api/logins/{server}"}
    kept |= {"PUT /api/secrets/{name}", "DELETE /api/secrets/{name}"}
    kept |= {"PATCH /api/settings", "POST /api/settings/agents", "DELETE /api/settings/agents/{name}"}
    kept |= {"POST /api/editors/{id}/refuse", "POST /api/devices/listener", "DELETE /api/devices/listener"}
    for target in ALL:
        expected = target.area != "agent" and str(target) not in kept and target.path != "/gallery"
        assert await bench.reaches(bench.device, target, "device") is expected, target


async def test_a_devices_bearer_is_good_nowhere_on_loopback(bench: Bench) -> None:
    for target in ALL:
        if target.area not in ("page", "open"):
            assert not await bench.reaches(bench.desk, target, "device"), target


async def test_devices_that_leave_high_risk_to_the_desk_change_no_rule_and_no_terminal(bench: Bench) -> None:
    bench.limited = True
    for method, path in (
        *(("POST", "/api/rules"), ("DELETE", "/api/rules/r1"), ("POST", "/api/folders/trust")),
        *(("POST", "/api/terminals"), ("POST", "/api/terminals/t1/input"), ("POST", "/api/undo/c1")),
        *(("PATCH", "/api/rules/r1"), ("POST", "/api/rules/r1/move"), ("DELETE", "/api/pause")),
    ):
        assert not await bench.reaches(bench.device, Target(method, path), "device"), path
    for method, path in (
        ("POST", "/api/rules/test"),
        ("GET", "/api/terminals"),
        ("POST", "/api/calls/c1/cancel"),
        ("PUT", "/api/pause"),
    ):
        assert await bench.reaches(bench.device, Target(method, path), "device"), path


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:7433"},
        {"host": "192.168.1.20"},
        {"host": "evil.example:7434"},
        {"origin": "http://192.168.1.20:7434"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
    ids=str,
)
async def test_a_foreign_name_or_origin_reaches_no_handler(bench: Bench, headers: dict[str, str]) -> None:
    for target in ALL:
        assert not await bench.reaches(bench.device, target, "device", **headers), target
    assert await bench.reaches(bench.device, Target("GET", "/api/state"), "device", origin=f"https://{HOST}")


async def test_sign_in_attempts_of_one_address_are_limited_and_others_are_not_affected(bench: Bench) -> None:
    target = Target("POST", "/api/sign-in")
    made = [
        await bench.reaches(bench.device, target, "none", peer="10.0.0.9") for _ in range(MOST_ATTEMPTS + 2)
    ]
    assert made == [True] * MOST_ATTEMPTS + [False] * 2
    assert await bench.reaches(bench.device, target, "none", peer="10.0.0.8")


@dataclass
class Device:
    """A phone without a browser: a key, a bearer, and HTTP over TLS that trusts the CA."""

    person: Person
    url: str
    tls: ssl.SSLContext
    key: BrowserKey = field(default_factory=BrowserKey)
    sign_in: str = ""
    bearer: str = ""

    @classmethod
    async def connected(cls, person: Person, **where: object) -> tuple["Device", str]:
        """A device that is not paired yet, and the code for it."""
        body = {"address": "127.0.0.1", "port": free_port(), **where}
        code = await person.post("devices/listener", body)
        tls = ssl.create_default_context(cafile=code["devices"]["ca_file"])
        return cls(person, code["devices"]["url"], tls), code["code"]

    @classmethod
    async def paired(cls, person: Person) -> "Device":
        device, code = await cls.connected(person)
        assert await device.pair(code) == 200
        return device

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
        bearer = {"Authorization": f"Bearer {self.bearer}"} if self.bearer else {}
        async with httpx.AsyncClient(base_url=f"{self.url}/api/", verify=self.tls, timeout=BOUND) as http:
            return await http.request(method, path, json=body, headers={**bearer, **headers})

    async def pair(self, code: str) -> int:
        body = {"code": code, "key": self.key.public, "name": "Safari on iPhone"}
        response = await self.ask("POST", "sign-in", body)
        if response.is_success:
            self.sign_in, self.bearer = response.json()["sign_in"], response.json()["bearer"]
        return response.status_code

    async def sign_in_again(self) -> httpx.Response:
        asked = await self.ask("POST", "sign-in/challenge", {"sign_in": self.sign_in})
        if not asked.is_success:
            return asked
        nonce = asked.json()["nonce"]
        signature = base64.b64encode(self.key.sign(self.sign_in, nonce)).decode()
        body = {"sign_in": self.sign_in, "nonce": nonce, "signature": signature}
        return await self.ask("POST", "sign-in/key", body)

    @asynccontextmanager
    async def live(self, **options: Any) -> AsyncGenerator[ClientConnection]:
        address = f"{self.url.replace('https', 'wss')}/api/live"
        protocols = ["handrail", f"bearer.{self.bearer}"]
        async with connect(address, ssl=self.tls, subprotocols=protocols, **options) as socket:  # type: ignore[arg-type]
            yield socket


async def read_to_end(socket: ClientConnection) -> int | None:
    """Read until the daemon closes the socket; its close code."""
    with anyio.fail_after(BOUND):
        with contextlib.suppress(ConnectionClosedError):
            async for _ in socket:
                pass
    return socket.close_code


@pytest.fixture(scope="module")
def home() -> Generator[Home]:
    with running_daemon() as home:
        yield home


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


@pytest.mark.e2e
async def test_a_device_is_paired_by_a_code_once_and_revoked_at_once(person: Person) -> None:
    device, code = await Device.connected(person)
    assert (await device.ask("GET", "state")).status_code == 401
    assert (await device.ask("GET", "health")).status_code == 401
    desk_code = (await person.link()).partition("#code=")[2]
    assert await device.pair(desk_code) == 401, "a link for a browser at the desk pairs no device"
    at_desk = await person.ask("POST", "sign-in", {"code": code})
    assert at_desk.status_code == 401, "nor does a pairing code sign in a browser at the desk"

    assert await device.pair(code.lower().replace("-", " ")) == 200
    assert (await device.ask("GET", "state")).status_code == 200
    assert (await device.ask("GET", "state", None, Origin="https://evil.example")).status_code == 403
    at_desk = await Person(person.home, device.bearer).ask("GET", "state")
    assert at_desk.status_code == 401, "its bearer is of no use on loopback"
    again = await device.sign_in_again()
    assert again.status_code == 200, "a program of the person, on this machine"
    stolen = await person.ask("POST", "sign-in/challenge", {"sign_in": device.sign_in})
    assert stolen.status_code == 401, "its key is of no use on loopback either"

    with pytest.raises(InvalidStatus):
        async with device.live(additional_headers={"Origin": "https://evil.example"}):
            pass
    async with device.live(additional_headers={"Origin": device.url}) as socket:
        (row,) = [each for each in await person.get("sign-ins") if each["id"] == device.sign_in]
        assert (row["device"], row["name"]) == (True, "Safari on iPhone")
        assert (await person.ask("DELETE", f"sign-ins/{device.sign_in}")).status_code == 204
        since = time.monotonic()
        assert await read_to_end(socket) == 4401
        assert time.monotonic() - since < 1.0
    assert (await device.ask("GET", "state")).status_code == 401
    assert (await device.sign_in_again()).status_code == 401


@pytest.mark.e2e
async def test_a_code_that_is_used_twice_or_guessed_at_is_of_no_use(person: Person) -> None:
    device, code = await Device.connected(person)
    assert await device.pair(code) == 200
    thief = Device(person, device.url, device.tls)
    assert await thief.pair(code) == 401
    assert (await device.ask("GET", "state")).status_code == 401, "two used it, so neither is signed in"
    other, code = await Device.connected(person)
    assert await other.pair("") == 422
    for _ in range(MOST_MISSES):
        assert await other.pair("AAAA-AAAA-AAAA") == 401
    assert await other.pair(code) == 401, "the code is dropped after so many guesses"


@pytest.mark.e2e
async def test_the_listener_is_off_by_default_ends_and_outlives_a_killed_daemon(
    person: Person, home: Home
) -> None:
    device = await Device.paired(person)
    home.kill()
    home.up()
    assert (await device.ask("GET", "state")).status_code == 200, "the keeper remembers device and address"
    async with device.live() as socket:
        assert (await person.ask("DELETE", "devices/listener")).status_code == 204
        await read_to_end(socket)
    with pytest.raises(httpx.ConnectError):
        await device.ask("GET", "state")
    assert (await person.get("devices"))["url"] is None
    assert (await person.ask("DELETE", "devices/listener")).status_code == 404
    refused = await person.ask("POST", "devices/listener", {"address": "0.0.0.0"})
    assert (refused.status_code, "every network" in refused.json()["detail"]) == (409, True)


@pytest.mark.e2e
async def test_behind_a_proxy_only_its_name_is_answered_and_no_desk_bearer_is_good(person: Person) -> None:
    port = free_port()
    body = {"port": port, "name": "box.example.ts.net", "behind_proxy": True}
    code = await person.post("devices/listener", body)
    assert code["url"].startswith("https://box.example.ts.net/#code=")
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=BOUND) as http:
        named = {"Host": "box.example.ts.net"}
        assert (await http.get("/", headers=named)).status_code == 200
        assert (await http.get("/")).status_code == 421
        assert (await http.get("/api/state", headers={**named, **person.headers})).status_code == 401
        key = BrowserKey()
        signed = await http.post(
            "/api/sign-in", json={"code": code["code"], "key": key.public}, headers=named
        )
        bearer = {"Authorization": f"Bearer {signed.json()['bearer']}"}
        assert (await http.get("/api/state", headers={**named, **bearer})).status_code == 200


STEAL = """
import base64, json, ssl, sys, urllib.error, urllib.request
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import load_pem_private_key

def post(path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ca)) as response:
        return json.load(response)

url, ca, sign_in, pem, nonce = sys.argv[1:]
key = load_pem_private_key(open(pem, "rb").read(), None)
r, s = utils.decode_dss_signature(key.sign(f"handrail sign-in\\n{sign_in}\\n{nonce}".encode(), ec.ECDSA(hashes.SHA256())))
signature = base64.b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).decode()
try:
    post("/api/sign-in/key", {"sign_in": sign_in, "nonce": nonce, "signature": signature})
    print("signed in")
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["detail"])
"""


@pytest.mark.e2e
async def test_high_risk_is_left_to_the_desk_and_a_command_signs_in_with_no_devices_key(
    tmp_path: Path,
) -> None:
    with running_daemon('[devices]\nhigh_risk = "desk"\n') as home:
        person = person_of(home)
        device = await Device.paired(person)
        pem, script = tmp_path / "key.pem", tmp_path / "steal.py"
        pem.write_text(device.key.pem)
        script.write_text(STEAL)
        issued = await device.ask("POST", "sign-in/challenge", {"sign_in": device.sign_in})
        nonce = issued.json()["nonce"]
        async with agent(home, tmp_path) as client:
            where = f"{device.url} {(await person.get('devices'))['ca_file']} {device.sign_in} {pem} {nonce}"
            asked = client.ask(
                "execute_command", command=f"{sys.executable} {script} {where}", wait_seconds=60
            )
            question = await person.question()
            assert question["risk"] == "high", question["reasons"]
            allow = {"answer": "allow", "digest": question["digest"]}
            refused = await device.ask("POST", f"approvals/{question['id']}/answer", allow)
            assert (refused.status_code, "at your desk" in refused.json()["detail"]) == (403, True)
            (await person.answer(question, "allow")).raise_for_status()
            reply = await asked.told()
            assert reply.data["output"].startswith("403 This runs inside an agent's process tree"), reply.text

            thread = await person.post("threads", {})
            bypass = {"setting": "mode", "value": "bypassPermissions"}
            refused = await device.ask("POST", f"threads/{thread['id']}/setting", bypass)
            assert (refused.status_code, "at your desk" in refused.text) == (403, True), refused.text

            push = {"p256dh": "A" * 87, "auth": "A" * 22}
            local = await device.ask("PUT", "push", {**push, "endpoint": "http://127.0.0.1:9/shutdown"})
            assert local.status_code == 422, "Handrail would post to a program of this machine"
            elsewhere = await device.ask("PUT", "push", {**push, "endpoint": "https://push.example.org/1"})
            assert elsewhere.status_code == 204
            assert (await device.ask("DELETE", "push")).status_code == 204

            secret = client.ask("write_file", path=".git/hooks/pre-commit", content="true\n")
            question = await person.question("pre-commit")
            assert question["risk"] == "high", question["reasons"]
            body = {"digest": question["digest"]}
            for completion in (body, {**body, "content": "false\n"}, {**body, "content": "", "text": "x"}):
                refused = await device.ask("POST", f"calls/{question['call_id']}/complete", completion)
                assert (refused.status_code, "at your desk" in refused.text) == (403, True), refused.text
            given = await device.ask("POST", f"calls/{question['call_id']}/complete", {"text": "not now"})
            assert given.json()["won"], "a text in place of the write allows nothing"
            assert not (tmp_path / ".git").exists()
            await secret.told()

            harmless = client.ask("execute_command", command="echo hello", wait_seconds=60)
            question = await person.question("echo")
            rule = {"effect": "allow", "tool": "execute_command", "command": "echo"}
            allow = {"answer": "allow", "digest": question["digest"]}
            ruled = await device.ask("POST", f"approvals/{question['id']}/answer", {**allow, "rule": rule})
            assert ruled.status_code == 403
            answered = await device.ask("POST", f"approvals/{question['id']}/answer", allow)
            assert (answered.status_code, answered.json()["by"]) == (200, "a person on the phone")
            assert (await harmless.told()).data["exit_code"] == 0
