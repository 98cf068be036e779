"""An editor's extension host on the daemon's socket: it watches, is paired, decides, and is revoked."""

import anyio.to_thread
import httpx
from tests.support.daemon_home import Home
from tests.support.editor_process import EditorTree
from tests.support.person_client import Person

Json = dict[str, object]


def status(home: Home, bearer: object, method: str, path: str, body: object = None) -> int:
    headers = {"Authorization": f"Bearer {bearer}"}
    return httpx.request(method, f"{home.url}/api/{path}", headers=headers, json=body).status_code


async def test_an_extension_host_decides_while_it_is_paired(shared_home: Home, shared_person: Person) -> None:
    with EditorTree(str(shared_home.places.daemon_socket)) as tree:

        async def reply() -> Json:
            return await anyio.to_thread.run_sync(tree.read_reply)

        tree.connect("host")
        watching = await reply()
        assert watching["approves"] is False
        (row,) = await shared_person.get("editors")
        assert (row["state"], row["number"], row["pid"]) == ("waiting", watching["number"], tree.process.pid)
        assert status(shared_home, watching["bearer"], "GET", "state") == 200
        assert status(shared_home, watching["bearer"], "POST", "code") == 403
        pair = (f"editors/{row['id']}/pair", {"number": row["number"]})
        assert status(shared_home, watching["bearer"], "POST", *pair) == 403

        (await shared_person.ask("POST", *pair)).raise_for_status()

        deciding = await reply()
        assert (deciding["approves"], deciding["why"]) == (True, "")
        assert status(shared_home, watching["bearer"], "GET", "state") == 401
        assert status(shared_home, deciding["bearer"], "POST", "code") == 200
        assert status(shared_home, deciding["bearer"], "POST", *pair) == 409

        tree.connect("below")
        assert (await reply())["approves"] is False

        (await shared_person.ask("POST", f"editors/{row['id']}/refuse")).raise_for_status()
        assert (await reply())["approves"] is False
        assert status(shared_home, deciding["bearer"], "GET", "state") == 401


async def test_a_pairing_outlives_the_daemon(home: Home, person: Person) -> None:
    with EditorTree(str(home.places.daemon_socket)) as tree:
        tree.connect("host")
        first = await anyio.to_thread.run_sync(tree.read_reply)
        pair = (f"editors/{first['editor']}/pair", {"number": first["number"]})
        (await person.ask("POST", *pair)).raise_for_status()
        assert (await anyio.to_thread.run_sync(tree.read_reply))["approves"]

        home.kill()
        home.up()

        tree.connect("host")
        assert (await anyio.to_thread.run_sync(tree.read_reply))["approves"]
