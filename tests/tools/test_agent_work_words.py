"""Whatever an agent names in its own input counts, wherever it stands; what might mean more is not taken for plain."""

from typing import Any

import pytest

from handrail.tools.agent_work import AgentInput


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"command": "ls -l"}, ["ls -l"]),
        ({"command": ["git", "commit", "-m", "a b"]}, ["git commit -m 'a b'"]),
        ({"command": "git", "args": ["push", "--force"]}, ["git push --force"]),
        ({"command": "ls", "cmd": "rm x"}, ["ls", "rm x"]),
        ({"command": "ls", "commands": ["ls"]}, ["ls"]),
        ({"commands": ["ls", "rm x"]}, ["ls", "rm x"]),
        ({"command": ["ls", 7]}, []),
        ({"command": "git", "args": ["push", None]}, []),
        ({"command": "git", "args": ["log"], "arguments": ["push"]}, []),
        ({"command": "git", "args": [], "arguments": ["push"]}, ["git push"]),
        ({"command": "a\0b"}, []),
        ({"command": " "}, []),
        ("ls", []),
        (None, []),
    ],
)
def test_lines_are_read_whole_or_not_at_all(given: Any, lines: list[str]) -> None:
    assert AgentInput(given).lines == lines


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"command": "ls", "description": "look", "timeout": 5, "cwd": "/x", "env": {}}, True),
        ({"command": "git", "args": ["log"]}, True),
        ({"command": "ls", "env": {"LD_PRELOAD": "x"}}, False),
        ({"command": "ls", "dangerouslyDisableSandbox": True}, False),
        ({"command": "ls", "cwd": "/x", "workdir": "/y"}, False),
        ({"command": "ls", "script": "rm x"}, False),
        ({"command": "ls", "script": 7}, False),
        ({"command": "ls", "commands": ["ls"]}, True),
        ({"command": "ls", "commands": ["ls", "ls"]}, False),
        ({"command": "ls", "source": "agent", "process_id": 7}, True),
        ({"command": "ls", "source": "x.sh"}, False),
        ({}, False),
    ],
)
def test_a_line_is_plain_when_nothing_beside_it_could_change_it(given: Any, plain: bool) -> None:
    assert AgentInput(given).one_line is plain


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"file_path": "/a", "filePath": "/b", "notebook_path": "/c"}, ["/a", "/b", "/c"]),
        ({"edits": [{"path": "/a", "new_string": "/no"}]}, ["/a"]),
        ({"paths": ["/a", 7, "/b"]}, ["/a", "/b"]),
        ({"changes": {"/a": {"type": "add"}}, "grant_root": "/"}, ["/a", "/"]),
        ({"source": "/a", "destination": "../b", "to": "Ann"}, ["/a", "../b"]),
        ({"pattern": "/x", "content": "/y"}, []),
        (["/a"], []),
    ],
)
def test_paths_are_found_wherever_they_stand(given: Any, paths: list[str]) -> None:
    assert AgentInput(given).paths == paths


def test_every_url_must_say_which_machine() -> None:
    both = AgentInput({"url": "https://a.org/x", "urls": ["https://b.org"], "prompt": "see https://c.org"})
    assert (both.hosts, both.reaches) == (["a.org", "b.org"], True)
    assert not AgentInput({"url": "https://a.org", "uri": "b"}).reaches
    assert not AgentInput({"query": "weather"}).reaches


def test_what_is_no_object_is_not_read() -> None:
    assert AgentInput(None).readable
    assert AgentInput({}).readable
    assert not AgentInput("a part of something").readable
    assert AgentInput({"new_string": "x"}).changes
    assert not AgentInput({"pattern": "x", "content": None}).changes
