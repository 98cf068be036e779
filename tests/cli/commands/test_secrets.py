"""`handrail servers secret`: a value goes in by the keyboard or a pipe, and never comes out again."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.support.cli_home import Home, Screen

pytestmark = pytest.mark.e2e
SERVER = Path(__file__).parents[2] / "support" / "mcp_servers" / "relayed.py"


def pipe(handrail: Home, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        handrail.argv(*arguments), input=text, env=handrail.env, text=True, capture_output=True, check=False
    )


def test_a_server_gets_secrets_that_were_typed_or_piped(handrail: Home, tmp_path: Path) -> None:
    handrail.ok(
        "servers", "add", "files", "--secret", "TOKEN", "--", sys.executable, "-I", str(SERVER), str(tmp_path)
    )
    assert "TOKEN is missing" in handrail.ok("servers", "secret").err
    assert "handrail servers secret set TOKEN" in handrail.ok("servers").err
    assert "handrail servers secret set TOKEN" in handrail.run("servers", "test", "files").out

    with Screen(handrail, "servers", "secret", "set", "TOKEN") as screen:
        screen.shows("TOKEN (not shown)")
        screen.type("s3cret-77\n")
        assert "which only your user can read" in screen.shows("files gets it from the next start")
        assert "s3cret-77" not in screen.shows("ends what runs")
    assert "✓ works" in handrail.ok("servers", "test", "files").out
    piped = pipe(handrail, "other-88\n", "servers", "secret", "set", "OTHER")
    assert (piped.returncode, "No server needs it yet" in piped.stderr) == (0, True)
    listed = handrail.ok("servers", "secret", "list", "--json")
    assert listed.json == [
        {"name": "OTHER", "kept": "file", "servers": []},
        {"name": "TOKEN", "kept": "file", "servers": ["files"]},
    ]
    assert '"OTHER": "other-88"' in (handrail.path / "secrets.json").read_text()

    handrail.ok("servers", "secret", "remove", "OTHER")
    assert "files still needs it" in handrail.ok("servers", "secret", "remove", "TOKEN").err
    assert handrail.run("servers", "secret", "remove", "TOKEN").code == 1
    assert pipe(handrail, "\n", "servers", "secret", "set", "EMPTY").returncode == 1
    assert "takes letters, digits and _" in handrail.run("servers", "secret", "set", "bad name").err
    assert "printable" in pipe(handrail, "a\nb", "servers", "secret", "set", "LINES").stderr
    handrail.ok("servers", "remove", "files")


def test_credentials_given_with_add_are_stored_as_secrets(handrail: Home) -> None:
    added = handrail.ok(
        "servers", "add", "far", "--url", "https://far.example/mcp", "--header", "Authorization: Bearer b34rer",
        "--header", "X-Team: {secret:TEAM}", "--header", "X-Mode: fast",
    )  # fmt: skip
    assert "FAR_AUTHORIZATION looks like a credential" in added.err
    assert "It needs TEAM, which is not stored" in added.out
    text = (handrail.path / "config.toml").read_text()
    (entry,) = tomllib.loads(text)["servers"]
    assert entry["headers"] == {
        "Authorization": "Bearer {secret:FAR_AUTHORIZATION}",
        "X-Team": "{secret:TEAM}",
        "X-Mode": "fast",
    }
    assert "b34rer" not in text
    assert "FAR_AUTHORIZATION is still stored" in handrail.ok("servers", "remove", "far").err
    handrail.ok("servers", "secret", "remove", "FAR_AUTHORIZATION")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--url", "https://x.example", "--", "cmd"), "or --url URL"),
        (("--url", "https://x.example", "--secret", "A"), "write {secret:NAME}"),
        (("--url", "https://x.example", "--env", "A=b"), "server with a command"),
        (("--url", "https://x.example", "--header", "A=b"), "takes 'NAME: VALUE'"),
        (("--header", "A: b", "--", "cmd"), "for a server with --url"),
        (("--url", "http://x.example"), "https://"),
    ],
)
def test_options_that_do_not_fit_get_a_sentence(
    handrail: Home, arguments: tuple[str, ...], words: str
) -> None:
    done = handrail.run("servers", "add", "odd", *arguments)
    assert done.code != 0
    assert words in " ".join(done.err.split())
