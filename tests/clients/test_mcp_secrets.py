"""Credentials of a client's MCP server go to the secret store; config.toml gets references to them."""

from typing import Any

import pytest

from handrail.clients.mcp_secrets import find_credentials, find_file_credentials, is_plain, split_secrets

PLAIN = [
    ("ROOT", "/srv/my files"),
    ("HOST", "localhost"),
    ("API", "https://x.example:8080/api/v2"),
    ("PORT", "8080"),
    ("MODE", "en_US.UTF-8"),
    ("REGION", "us-east-1"),
    ("EMPTY", ""),
    ("TOKENIZERS_PARALLELISM", "true"),
    ("X-Client", "editor"),
]
CREDENTIALS = [
    ("GITHUB_TOKEN", "x"),
    ("DB_PW", "word"),
    ("APIKEY", "abc"),
    ("Authorization", "Bearer abc"),
    ("X", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("X", "a8Kd93jf0"),
    ("HOOK", "https://hooks.example/services/T0B3/xYz81"),
    ("DATABASE_URL", "postgres://me:pw@localhost/db"),
    ("URL", "https://x.example/?key=1"),
    ("LONG", "word" * 20),
    ("NODE_PATH", "/home/somebody/with-a-long-name/node_modules:/usr/lib"),  # judged in linear time
]


@pytest.mark.parametrize(("name", "value"), PLAIN)
def test_an_obvious_value_stays_in_the_file(name: str, value: str) -> None:
    assert is_plain(name, value)


@pytest.mark.parametrize(("name", "value"), CREDENTIALS)
def test_a_value_that_may_be_a_credential_goes_to_the_secret_store(name: str, value: str) -> None:
    assert not is_plain(name, value)


def test_variables_keep_their_names_unless_another_secret_has_them() -> None:
    section = {"name": "git-hub", "command": ["x"], "env": {"TOKEN": "t1", "ROOT": "/srv", "KEY": "k1"}}

    split = split_secrets(section, {"TOKEN"})

    assert split.problem == ""
    assert split.secrets == {"GIT_HUB_TOKEN": "t1", "KEY": "k1"}
    assert split.section == {
        "name": "git-hub",
        "command": ["x"],
        "env": {"TOKEN": "{secret:GIT_HUB_TOKEN}", "ROOT": "/srv"},
        "secrets": ["KEY"],
    }
    again = split_secrets(section, {"TOKEN", "GIT_HUB_TOKEN"})
    assert again.secrets == {"GIT_HUB_TOKEN_2": "t1", "KEY": "k1"}


def test_a_header_keeps_its_scheme() -> None:
    section = {
        "name": "far",
        "url": "https://x.example",
        "headers": {"Authorization": "Bearer abc", "X-A": "b"},
    }
    split = split_secrets(section, ())
    assert split.section["headers"] == {"Authorization": "Bearer {secret:FAR_AUTHORIZATION}", "X-A": "b"}
    assert split.secrets == {"FAR_AUTHORIZATION": "abc"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": ["x", "--api-key", "abc"]}, "(--api-key)"),
        ({"command": ["x", "--github-token=abc"]}, "(--github-token)"),
        ({"command": ["x", "postgres://me:pw@h/db"]}, "(argument 1)"),
        ({"command": ["x", "sk-ant-0123456789"]}, "(argument 1)"),
        ({"url": "https://x.example/mcp?api_key=abc"}, "its URL"),
        ({"command": ["x"], "env": {"KEY": "-----BEGIN\nabc"}}, "several lines"),
    ],
)
def test_a_credential_that_would_stand_in_the_file_is_named_and_not_shown(
    fields: dict[str, Any], words: str
) -> None:
    problem = split_secrets({"name": "far", **fields}, ()).problem
    assert words in problem
    assert "abc" not in problem


def test_words_that_only_look_like_flags_of_credentials_pass() -> None:
    command = ["npx", "-y", "@acme/token-server", "--keyboard", "us", "--tokens"]
    assert split_secrets({"name": "x", "command": command}, ()).problem == ""


def test_credentials_of_a_clients_entry_are_found_to_be_hidden() -> None:
    entry = {"env": {"KEY": "k1", "ROOT": "/srv"}, "http_headers": {"Cookie": "c=1"}, "headers": 3}
    assert list(find_credentials(entry)) == ["k1", "c=1"]


def test_credentials_anywhere_in_a_clients_file_are_found_to_be_hidden() -> None:
    settings = {
        "env": {"ANTHROPIC_AUTH_TOKEN": "t1", "DEBUG": "1"},
        "apiKeyHelper": "/usr/bin/helper",
        "mcpServers": {
            "a": {"args": ["run", "--token", "t2", "--api-key=t3", "--verbose"], "url": "https://u:t4@x"}
        },
        "projects": [{"password": "t5"}, "sk-12345678"],
        "session": {"days": 30, "name": "work"},
        "hooks": {"SessionStart": [{"command": "handrail hook claude"}]},
    }
    assert list(find_credentials(settings)) == ["t1", "t2", "t3", "https://u:t4@x", "t5", "sk-12345678"]


def test_credentials_in_comments_and_in_yaml_are_found_to_be_hidden() -> None:
    text = """\
extensions:
  far:
    envs: {GITHUB_PAT: t1, REGION: eu}
    api_key: t2  # was: "sk-abcdefgh"
    timeout: 300
    session_days: 30
    cmd: /usr/bin/far
// "password": "t\\"3", "theme": "dark"
"""
    assert find_file_credentials(".yaml", text) == {"t1", "t2", "sk-abcdefgh", 't\\"3'}
