"""What people can do with terminals by /api: open, list, look, type, read, search, download, take over, close."""

import base64
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.daemon_home import BOUND, Home, eventually, until
from tests.support.mcp_client import agent
from tests.support.person_client import Json, Person, reader
from tests.support.terminal_socket import open_terminal

BIG = 12_000_000
FORTY_MB = 40 * 1024 * 1024


def bare(home: Path) -> Json:
    """For a shell without the start-up files of whoever runs the tests, which may take their time."""
    return {"env": {"HOME": str(home)}}


async def look(person: Person, terminal: str) -> Json:
    return await person.get(f"terminals/{terminal}")


async def text_of(person: Person, terminal: str) -> str:
    return (await person.get(f"terminals/{terminal}/output"))["text"]


async def prints(person: Person, terminal: str, words: str) -> None:
    """Wait until these words are among what a terminal shows."""

    async def see() -> bool:
        return words in await text_of(person, terminal)

    await eventually(see)


async def ended(person: Person, terminal: str) -> Json:
    async def see() -> Json | None:
        view = await look(person, terminal)
        return None if view["running"] else view

    return await eventually(see)


async def close(person: Person, terminal: str) -> Json:
    return await person.post(f"terminals/{terminal}/close")


async def events_of(person: Person, terminal: str) -> list[Json]:
    entries = (await person.get("events", after=0))["entries"]
    return [entry["event"] for entry in entries if entry["event"].get("terminal") == terminal]


async def test_a_person_opens_a_shell_runs_lines_in_it_and_sees_how_each_ended(
    shared_person: Person, workspace: Path
) -> None:
    body = {"name": "mine", "shell": "/bin/bash", "cwd": str(workspace), "cols": 90, **bare(workspace)}
    response = await shared_person.ask("POST", "terminals", body)
    assert response.status_code == 201
    view = response.json()
    terminal = view["id"]
    assert (view["name"], view["of"], view["running"], view["size"]) == ("mine", "tracked", True, [90, 40])
    assert view["owner"] == {"person": True, "name": "a person on the page", "workspace": None}
    assert view["shell"].endswith("bash")

    async def at_prompt() -> Json | None:
        detail = await look(shared_person, terminal)
        return detail if detail["at_prompt"] else None

    assert len((await eventually(at_prompt))["nonce"]) >= 16
    for line in ("echo one", "(exit 7)"):
        await shared_person.post(f"terminals/{terminal}/input", {"text": line})

    async def both() -> list[Json] | None:
        commands = (await look(shared_person, terminal))["commands"]
        return commands if len([one for one in commands if one["end"] is not None]) == 2 else None

    one, two = await eventually(both)
    assert (one["line"], one["exit_code"], one["cwd"]) == ("echo one", 0, str(workspace))
    assert (two["line"], two["exit_code"]) == ("(exit 7)", 7)
    shown = await shared_person.get(f"terminals/{terminal}/output", mode="raw", after=one["output"])
    assert base64.b64decode(shown["base64"])[: one["end"] - one["output"]].startswith(b"one\r\n")

    assert terminal in [one["id"] for one in (await shared_person.get("state"))["terminals"]]
    await close(shared_person, terminal)


async def test_where_a_shell_is_now_is_followed(shared_person: Person, workspace: Path) -> None:
    terminal = (await shared_person.post("terminals", {"shell": "bash", "cwd": "/", **bare(workspace)}))["id"]
    await shared_person.post(f"terminals/{terminal}/input", {"text": "cd /usr"})

    async def moved() -> bool:
        return (await look(shared_person, terminal))["cwd"] == "/usr"

    await eventually(moved)
    await close(shared_person, terminal)


async def test_a_shell_with_a_window_of_its_own_gets_exactly_its_environment(shared_person: Person) -> None:
    given = {"PATH": "/usr/bin", "MARK": "1"}
    terminal = await open_terminal(shared_person, "env", of="shell", keep=True, env=given)
    await ended(shared_person, terminal)
    variables = set((await text_of(shared_person, terminal)).split())
    assert variables == {"PATH=/usr/bin", "MARK=1", "PWD=/", f"HANDRAIL_TERMINAL={terminal}"}


async def test_a_shell_whose_window_never_comes_is_ended(shared_person: Person) -> None:
    env = {"PATH": os.environ["PATH"]}
    terminal = await open_terminal(shared_person, "sleep", "1000", of="shell", env=env)
    kept = await open_terminal(shared_person, "sleep", "1000", of="shell", env=env, keep=True)
    assert (await ended(shared_person, terminal))["signal"] is not None
    assert (await look(shared_person, kept))["running"] is True
    await close(shared_person, kept)


async def test_a_terminal_of_the_page_gets_of_the_environment_what_is_harmless(
    shared_home: Home, shared_person: Person
) -> None:
    terminal = await open_terminal(shared_person, "env", env={"EXTRA": "given"})
    await ended(shared_person, terminal)
    lines = (await text_of(shared_person, terminal)).splitlines()
    given = {name: value for name, _, value in (line.partition("=") for line in lines)}
    assert {"PATH", "HOME", "TERM", "HANDRAIL_TERMINAL"} <= given.keys()
    assert given["EXTRA"] == "given"
    assert "HANDRAIL_HOME" in shared_home.environment
    assert not given.keys() & {"HANDRAIL_HOME", "PYTEST_CURRENT_TEST", "PYTHONPATH", "PAGER"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"shell": "/bin/no-such-shell"}, "Shells on this machine: "),
        ({"shell": "no-such-shell"}, "on the PATH"),
        ({"shell": "./x"}, "relative path"),
        ({"shell": "/etc/passwd"}, "not executable"),
        ({"cwd": "/no/such/folder"}, "There is no folder /no/such/folder"),
        ({"cwd": "relative"}, "not an absolute path"),
        ({"cols": 0}, "does not fit"),
        ({"rows": 5000}, "does not fit"),
        ({"env": {"A=B": "1"}}, "name of a variable"),
        ({"args": ["a\0b"]}, "NUL"),
        ({"colour": "red"}, "does not fit"),
    ],
)
async def test_a_terminal_that_cannot_be_gets_a_sentence(
    shared_person: Person, body: Json, words: str
) -> None:
    before = len(await shared_person.get("terminals", limit=1000))
    response = await shared_person.ask("POST", "terminals", body)
    assert (response.status_code, words in response.json()["detail"]) == (422, True), response.text
    assert len(await shared_person.get("terminals", limit=1000)) == before


async def test_keys_are_typed_by_name_and_what_is_no_key_is_said(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "cat", "-v")
    path = f"terminals/{terminal}/input"
    await shared_person.post(path, {"text": "ab", "newline": False, "keys": ["backspace", "c", "enter"]})
    await prints(shared_person, terminal, "ac\nac")
    assert (await shared_person.ask("POST", path, {"keys": ["hyper-x"]})).status_code == 422
    assert (await shared_person.ask("POST", path, {})).status_code == 422
    await shared_person.post(path, {"keys": ["ctrl-c"]})
    assert (await ended(shared_person, terminal))["signal"] == "SIGINT"
    late = await shared_person.ask("POST", path, {"text": "x"})
    assert (late.status_code, "has ended" in late.json()["detail"]) == (409, True)


async def test_what_is_typed_stands_in_the_history_with_who_typed_it(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "cat")
    await shared_person.post(f"terminals/{terminal}/input", {"text": "remember me"})

    async def remembered() -> list[Json] | None:
        return [one for one in (await look(shared_person, terminal))["typed"] if one["text"]] or None

    (typed,) = await eventually(remembered)
    assert typed["text"].strip() == "remember me"
    assert (typed["by"], typed["person"]) == ("a person on the page", True)
    await close(shared_person, terminal)


async def test_output_is_read_by_cursor_by_lines_as_text_raw_and_screen(shared_person: Person) -> None:
    script = r"printf '\033]0;a title\007\033[31mred\033[0m\n10%%\r20%%\r30%%\n'; seq 1 5"
    terminal = await open_terminal(shared_person, "sh", "-c", script, cols=40, rows=10)
    await ended(shared_person, terminal)
    path = f"terminals/{terminal}/output"
    whole = await shared_person.get(path)
    assert whole["text"] == "red\n30%\n1\n2\n3\n4\n5\n"
    assert whole["next"] == whole["end"]
    raw = await shared_person.get(path, mode="raw", after=0)
    assert base64.b64decode(raw["base64"]).startswith(b"\x1b]0;a title\x07\x1b[31mred")
    assert (await shared_person.get(path, lines=2))["text"].split() == ["4", "5"]
    assert (await shared_person.get(path, after=whole["end"]))["text"] == ""
    screen = await shared_person.get(path, mode="screen")
    assert screen["text"].split("\n")[:3] == ["red", "30%", "1"]
    assert (screen["cursor"], screen["alternate"]) == ([0, 7], False)


async def test_a_search_finds_lines_with_what_stands_around_them(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "seq", "1", "3000")
    await ended(shared_person, terminal)
    path = f"terminals/{terminal}/search"
    found = await shared_person.get(path, pattern="^17$", context=1)
    (match,) = found["matches"]
    assert (match["line_number"], match["text"], match["before"], match["after"]) == (
        17,
        "17",
        ["16"],
        ["18"],
    )
    assert found["more"] is False
    many = await shared_person.get(path, pattern="1", max_results=5)
    assert (len(many["matches"]), many["more"]) == (5, True)
    bad = await shared_person.ask("GET", path, pattern="(")
    assert (bad.status_code, "pattern" in bad.json()["detail"]) == (422, True)


async def test_a_large_output_is_downloaded_whole_under_a_harmless_name(shared_person: Person) -> None:
    name = 'a"; filename="evil.html\r\nX-Evil: 1 \u202e/../..'
    terminal = await open_terminal(shared_person, "head", "-c", str(BIG), "/dev/zero", name=name)
    await ended(shared_person, terminal)
    before = (await shared_person.get("health"))["daemon"]["rss_bytes"]
    response, digest = await download(shared_person, terminal, mode="raw")
    assert digest == hashlib.sha256(bytes(BIG)).hexdigest()
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "x-evil" not in response.headers
    named = response.headers["content-disposition"]
    assert re.fullmatch(rf'attachment; filename="[A-Za-z0-9-]+-{terminal}\.raw"', named)
    assert (await shared_person.get("health"))["daemon"]["rss_bytes"] - before < FORTY_MB


async def download(person: Person, terminal: str, **query: Any) -> tuple[httpx.Response, str]:
    digest = hashlib.sha256()
    url = f"{person.home.url}/api/terminals/{terminal}/output"
    async with (
        httpx.AsyncClient(headers=person.headers, timeout=BOUND) as http,
        http.stream("GET", url, params={"download": True, **query}) as response,
    ):
        async for piece in response.aiter_bytes():
            digest.update(piece)
    return response, digest.hexdigest()


async def test_a_download_as_text_has_every_line_once_wherever_it_was_cut(shared_person: Person) -> None:
    script = r"""awk 'BEGIN { for (n = 0; n < 90000; n++) printf "\033[1mé%d\033[0m\n", n }'"""
    terminal = await open_terminal(shared_person, "sh", "-c", script)
    await ended(shared_person, terminal)
    response, digest = await download(shared_person, terminal)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    whole = "".join(f"é{n}\n" for n in range(90_000)).encode()
    assert digest == hashlib.sha256(whole).hexdigest()


async def test_a_screen_is_downloaded_as_its_rows(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "printf", "one\\ntwo\\n", cols=20, rows=4)
    await ended(shared_person, terminal)
    _, digest = await download(shared_person, terminal, mode="screen")
    assert digest == hashlib.sha256(b"one\ntwo\n\n\n").hexdigest()


async def test_closing_says_what_was_stopped_and_who_closed_it(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "sh", "-c", "sleep 1001 & echo up; sleep 1002; true")
    await prints(shared_person, terminal, "up")
    closed = await close(shared_person, terminal)
    assert (closed["running"], closed["left"]) == (False, [])
    assert "sh" in [process["name"] for process in closed["stopped"]]
    assert closed["message"].startswith("Stopped ")
    for pid in [process["pid"] for process in closed["stopped"]]:
        await until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
    assert (await close(shared_person, terminal))["message"] == "It had ended before."
    closings = [
        event for event in await events_of(shared_person, terminal) if event["kind"] == "TerminalClosed"
    ]
    assert [event["by"] for event in closings] == ["a person on the page"]


async def test_terminals_are_listed_by_kind_and_page_by_page(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    mine = [await open_terminal(shared_person, "true") for _ in range(3)]
    listed = await shared_person.get("terminals", of="tracked", limit=2)
    rest = await shared_person.get("terminals", of="tracked", limit=1000, before=listed[-1]["seq"])
    assert [one["id"] for one in (*listed, *rest)][:3] == list(reversed(mine))
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="echo of a call")
        await shared_person.allow("of a call")
        terminal = (await asked.told()).data["terminal_id"]
    assert terminal in [one["id"] for one in await shared_person.get("terminals", of="command")]
    assert terminal not in [one["id"] for one in await shared_person.get("terminals", of="tracked")]
    both = await shared_person.get("terminals", of=["command", "tracked"], limit=1000)
    assert {terminal, *mine} <= {one["id"] for one in both}


async def test_a_terminal_is_taken_over_and_released_and_the_record_says_so(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "cat")
    path = f"terminals/{terminal}"
    for _ in range(2):
        taken = await shared_person.post(f"{path}/take")
        assert taken["taken"] == {"by": "a person on the page", "holds": True}
    for _ in range(2):
        assert (await shared_person.post(f"{path}/release"))["taken"] is None
    kinds = [event["kind"] for event in await events_of(shared_person, terminal)]
    assert [kind for kind in kinds if kind in ("TerminalTaken", "TerminalReleased")] == [
        "TerminalTaken",
        "TerminalReleased",
    ]
    await close(shared_person, terminal)


async def test_who_only_watches_gets_the_list_and_nothing_that_a_terminal_shows(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    terminal, marker = await open_terminal(shared_person, "bash", **bare(workspace)), "words-only-for-people"
    await shared_person.post(f"terminals/{terminal}/input", {"text": f"echo {marker}"})

    async def remembered() -> bool:
        return marker in str((await look(shared_person, terminal))["typed"])

    await eventually(remembered)
    nonce = (await look(shared_person, terminal))["nonce"]
    await shared_person.post(
        f"terminals/{terminal}/input", {"text": "sh -c 'printf \"Your name, Sir? \"; read x'"}
    )
    await eventually(lambda: is_asked(shared_person, terminal, "Your name, Sir?"))
    with reader(shared_home) as bearer:
        watcher = Person(shared_home, bearer)
        for path in ("", "/output", "/search?pattern=x"):
            assert (await watcher.ask("GET", f"terminals/{terminal}{path}")).status_code == 403
        for verb in ("input", "size", "take", "release", "close"):
            assert (await watcher.ask("POST", f"terminals/{terminal}/{verb}", {})).status_code == 403
        assert (await watcher.ask("POST", "terminals", {})).status_code == 403
        seen = str([await watcher.get(path) for path in ("terminals", "state", "events")])
    assert terminal in seen
    assert [word for word in (marker, nonce, "Your name, Sir") if word in seen] == []
    assert nonce in str(await shared_person.get("events")), "the search would have found it"
    await close(shared_person, terminal)


async def is_asked(person: Person, terminal: str, prompt: str) -> bool:
    found = (await look(person, terminal))["asks"]
    return found is not None and found["prompt"].strip() == prompt


@pytest.mark.parametrize(
    ("method", "verb", "body", "query"),
    [
        ("GET", "", None, {}),
        ("GET", "/output", None, {}),
        ("GET", "/search", None, {"pattern": "x"}),
        ("POST", "/input", {"text": "x"}, {}),
        ("POST", "/size", {"cols": 10, "rows": 10}, {}),
        ("POST", "/take", None, {}),
        ("POST", "/release", None, {}),
        ("POST", "/close", None, {}),
    ],
)
async def test_a_terminal_that_is_not_there_gets_a_sentence(
    shared_person: Person, method: str, verb: str, body: Json | None, query: Json
) -> None:
    for name in ("nope", "%2e%2e", "%2e%2e%00", "t" * 3000, "%f0%9f%92%a5"):
        response = await shared_person.ask(method, f"terminals/{name}{verb}", body, **query)
        assert response.status_code == 404, name
        assert response.json()["detail"].startswith("There is no terminal"), name
