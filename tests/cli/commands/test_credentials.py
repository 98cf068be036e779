"""Credentials for MCP over HTTP: made for one workspace, shown once, revoked for good."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.support.cli_home import BOUND, Home, Json

pytestmark = pytest.mark.e2e


def initialize(made: Json) -> int:
    """The status with which `/mcp` answers the holder of a credential."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    headers = {
        "Authorization": f"Bearer {made['bearer']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(made["url"], json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=BOUND) as response:
            return response.status
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def test_a_credential_lets_a_client_call_until_it_is_revoked(handrail: Home) -> None:
    made = handrail.ok("credential", "--name", "cursor", "--json").json
    assert made["workspace"] == str(handrail.workspace)
    assert initialize(made) == 200
    listed = [row for row in handrail.ok("credentials", "--json").json if row["id"] == made["id"]]
    assert [row["name"] for row in listed] == ["cursor"]
    assert "bearer" not in listed[0]
    assert "cursor" in handrail.ok("credentials").out

    assert handrail.ok("credentials", "revoke", made["id"][:6]).out == f"Revoked {made['id']}.\n"

    assert initialize(made) == 401
    assert made["id"] not in handrail.ok("credentials").out


def test_a_credential_is_for_the_project_around_the_current_folder(handrail: Home) -> None:
    (handrail.workspace / ".git").mkdir()
    inner = handrail.workspace / "src"
    inner.mkdir()
    done = handrail.run("credential", cwd=inner)
    assert f"Workspace  {handrail.workspace} " in done.out
    named = handrail.run("credential", "--workspace", "src", "--json")
    assert named.json["workspace"] == str(inner)


@pytest.mark.parametrize("folder", ["/", "missing"])
def test_a_workspace_that_is_none_is_refused(handrail: Home, folder: str, tmp_path: Path) -> None:
    done = handrail.run("credential", "--workspace", folder)
    assert done.code == 1
    assert "--workspace" in done.err


def test_revoking_what_is_not_there_is_a_sentence(handrail: Home) -> None:
    done = handrail.run("credentials", "revoke", "k-nobody")
    assert done.code == 1
    assert "There is no credential k-nobody." in done.err
