"""The key of a browser, taken from its profile: no process that Handrail or an agent started can sign in with it."""

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.browser_keys import BrowserKey
from tests.support.daemon_home import Home, running_daemon
from tests.support.mcp_client import agent
from tests.support.person_client import Person, person_of

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

THIEF = """
import base64, json, sys, urllib.error, urllib.request
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import load_pem_private_key

def post(path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)

def attempt(path, body):
    try:
        post(path, body)
        return "accepted"
    except urllib.error.HTTPError as error:
        return f"{error.code} {json.load(error)['detail']}"

url, sign_in, pem, nonce = sys.argv[1:]
key = load_pem_private_key(open(pem, "rb").read(), None)
print(attempt("/api/sign-in/challenge", {"sign_in": sign_in}))
r, s = utils.decode_dss_signature(key.sign(f"handrail sign-in\\n{sign_in}\\n{nonce}".encode(), ec.ECDSA(hashes.SHA256())))
signature = base64.b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).decode()
print(attempt("/api/sign-in/key", {"sign_in": sign_in, "nonce": nonce, "signature": signature}))
"""


@pytest.fixture
def home() -> Iterator[Home]:
    with running_daemon() as home:
        yield home


async def post(person: Person, path: str, body: dict[str, str]) -> httpx.Response:
    async with httpx.AsyncClient(base_url=person.home.url, verify=False) as http:
        return await http.post(path, json=body)


async def register(person: Person, key: BrowserKey) -> str:
    """Sign in by a link, as a browser does; the id of the sign-in."""
    code = (await person.link()).partition("#code=")[2]
    body = {"code": code, "key": key.public, "name": "Chrome on Linux"}
    return (await post(person, "/api/sign-in", body)).raise_for_status().json()["sign_in"]


async def sign_in_by_key(person: Person, sign_in: str, key: BrowserKey) -> httpx.Response:
    nonce = (await post(person, "/api/sign-in/challenge", {"sign_in": sign_in})).json()["nonce"]
    signature = base64.b64encode(key.sign(sign_in, nonce)).decode()
    body = {"sign_in": sign_in, "nonce": nonce, "signature": signature}
    return await post(person, "/api/sign-in/key", body)


async def test_a_stolen_key_is_of_no_use_to_an_approved_command_or_an_agent(
    home: Home, tmp_path: Path
) -> None:
    person, key = person_of(home), BrowserKey()
    sign_in = await register(person, key)
    own = await sign_in_by_key(person, sign_in, key)
    assert own.status_code == 200, "a program of the person"
    assert (await post(person, "/api/sign-in/key", json.loads(own.request.content))).status_code == 403

    nonce = (await post(person, "/api/sign-in/challenge", {"sign_in": sign_in})).json()["nonce"]
    pem, script = tmp_path / "key.pem", tmp_path / "thief.py"
    pem.write_text(key.pem)
    script.write_text(THIEF)
    async with agent(home, tmp_path) as client:
        command = f"{sys.executable} {script} {home.url} {sign_in} {pem} {nonce}"
        asked = client.ask("execute_command", command=command, wait_seconds=60)
        await person.allow()
        reply = await asked.told()
        assert reply.data["exit_code"] == 0, reply.text
        refusals = reply.data["output"].split("403 ")[1:]
        assert len(refusals) == 2, "neither the key nor another challenge, which could drop the browser's own"
        for refusal in refusals:
            assert refusal.startswith("This runs inside an agent's process tree"), reply.text
        below_agent = await post(person, "/api/sign-in/challenge", {"sign_in": sign_in})
    assert below_agent.status_code == 403, "this process has launched a door, so it counts as an agent"
    assert "agent's process tree" in below_agent.json()["detail"]


async def test_a_key_signs_in_only_what_was_registered_and_a_revoked_one_nobody(home: Home) -> None:
    person, key = person_of(home), BrowserKey()
    sign_in = await register(person, key)
    assert (await sign_in_by_key(person, sign_in, BrowserKey())).status_code == 403
    bearer = (await sign_in_by_key(person, sign_in, key)).json()["bearer"]
    assert (await person.ask("DELETE", f"sign-ins/{sign_in}")).status_code == 204
    assert (await person.ask("DELETE", f"sign-ins/{sign_in}")).status_code == 404
    assert (await post(person, "/api/sign-in/challenge", {"sign_in": sign_in})).status_code == 401
    async with httpx.AsyncClient(base_url=home.url, verify=False) as http:
        headers = {"Authorization": f"Bearer {bearer}"}
        assert (await http.get("/api/state", headers=headers)).status_code == 401
