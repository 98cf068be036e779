"""A bad value is refused with the file, the line and the fix; every value tells where it came from."""

from pathlib import Path

import pytest

from handrail.config import OWN_COMMAND, BadConfig, Config, load, load_project
from handrail.flat_settings import settings


def written(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load(tmp_path / "config.toml") == Config()


def test_what_is_written_holds(tmp_path: Path) -> None:
    text = 'default_policy = "deny"\n[server]\nport = 9000\n[command]\nenv_pass = ["FOO", "BAR_*"]\n'
    config = load(written(tmp_path, text))
    assert (config.default_policy, config.server.port) == ("deny", 9000)
    assert config.command.env_pass == ("FOO", "BAR_*")
    assert config.terminal.max_bytes == Config().terminal.max_bytes


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('default_policy = "maybe"\n', 1, "default_policy"),
        ("# a comment\n\n[server]\nport = 99999\n", 4, "server.port"),
        ('[server]\nport = "soon"\n', 2, "server.port"),
        ("[command]\nwait_secs = 3\n", 2, "there is no setting `command.wait_secs`"),
        ('[[rules]]\ncommand = "git"\n', 1, "`rules[1].effect` is missing"),
        ('[[rules]]\neffect = "allow"\n\n[[rules]]\neffect = "maybe"\n', 5, "`rules[2].effect` is 'maybe'"),
        (
            '[[rules]]\neffect = "deny"\nprefix = "git"\n',
            3,
            "there is no setting `rules[1].prefix`. Known: effect, tool",
        ),
        ('rules = [{effect = "deny", match = 3}]\n', 1, "rules[1].match"),
        ("[approvals]\nexpire_seconds = -1\n", 2, "approvals.expire_seconds"),
        ("[undo]\nkeep_days = 0\n", 2, "undo.keep_days"),
        ('[notify]\ndesktop = "loud"\n', 2, "notify.desktop"),
        ("server.port = 0\n", 1, "server.port"),
        ('[command]\nenv_pass = ["A=B"]\n', 2, "command.env_pass"),
        ('[[servers]]\nname = "My Files"\ncommand = ["x"]\n', 1, "the name of a server is up to 20"),
        ('[[servers]]\nname = "x"\n', 1, "a server needs either `command` or `url`"),
        ('[[servers]]\nname = "x"\nurl = "http://example.org/mcp"\n', 1, "begin with https://"),
        ('[[servers]]\nname = "x"\nurl = "https://a:b@example.org/mcp"\n', 1, "without a user name"),
        ('[[servers]]\nname = "x"\nurl = "https://a.org"\nenv = {A = "b"}\n', 1, "`env` is not for"),
        ('[[servers]]\nname = "x"\nurl = "https://a.org"\nheaders = {Host = "b"}\n', 1, "header Host is set"),
    ],
)
def test_a_bad_value_is_refused_with_file_line_and_fix(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadConfig) as caught:
        load(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}, line {line}: ")
    assert words in sentence
    assert "Fix or remove" in sentence


@pytest.mark.parametrize(
    "hidden", ['command = ["/tmp/x"]', 'env = {ANTHROPIC_BASE_URL = "http://127.0.0.1:1"}']
)
def test_no_agent_stands_behind_an_accepted_one_of_the_same_name(tmp_path: Path, hidden: str) -> None:
    """Settings are compared by name: only the last entry would be, and the agent of the first one would start."""
    accepted = '[[agents]]\nname = "handrail"\nenv_pass = ["ANTHROPIC_API_KEY"]\n'
    path = written(tmp_path, f'[[agents]]\nname = "handrail"\n{hidden}\n{accepted}')
    with pytest.raises(BadConfig, match="two `agents` have the same name"):
        load(path)


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"not valid TOML.*line 1"):
        load(written(tmp_path, "port = = 3\n"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfig, match="is not UTF-8"):
        load(path)


def test_every_value_tells_where_it_came_from(tmp_path: Path) -> None:
    path = written(tmp_path, "human_in_the_loop = false\n[server]\nport = 9000\n")
    origins = {setting.name: setting.origin for setting in settings(path)}
    assert origins["human_in_the_loop"] == f"{path}:1"
    assert origins["server.port"] == f"{path}:3"
    assert origins["command.stop_grace"] == "default"


def test_rules_tell_their_lines_and_are_shown_one_by_one(tmp_path: Path) -> None:
    text = '# mine\n[[rules]]\neffect = "deny"\ncommand = "git push"\n[server]\nport = 9000\n[[rules]]\neffect = "ask"\nhost = "a.org"\n'
    path = written(tmp_path, text)
    assert [rule.line for rule in load(path).rules] == [2, 7]
    found = {setting.name: (setting.value, setting.origin) for setting in settings(path)}
    assert found["rules[1]"] == ({"effect": "deny", "command": "git push"}, f"{path}:2")
    assert found["rules[2]"] == ({"effect": "ask", "host": "a.org"}, f"{path}:7")
    assert found["server.port"] == (9000, f"{path}:6")
    assert found["notify.desktop"] == (True, "default")


def test_a_project_sets_rules_and_how_strict_it_is_and_nothing_else(tmp_path: Path) -> None:
    found = load_project(tmp_path, 'default_policy = "deny"\n[[rules]]\neffect = "deny"\ntool = "t"\n')
    assert (found.default_policy, found.human_in_the_loop, found.rules[0].line) == ("deny", None, 2)
    with pytest.raises(BadConfig, match="no setting `command` in a project's file"):
        load_project(tmp_path, '[command]\nenv_pass = ["*"]\n')


def test_of_our_own_agent_it_need_not_be_said_how_it_is_started(tmp_path: Path) -> None:
    own, other = '[[agents]]\nname = "handrail"\ntitle = "Ours"\n', '[[agents]]\nname = "other"\n'
    (section,) = load(written(tmp_path, own)).agents
    assert (section.title, section.command) == ("Ours", OWN_COMMAND)
    (section,) = load(written(tmp_path, f'{own}command = ["mine"]\n')).agents
    assert section.command == ("mine",)
    (section,) = load(written(tmp_path, other)).agents
    assert section.command == (), "a known agent has one; `handrail agents` says so of any other"
    with pytest.raises(BadConfig, match=r"agents.*command"):
        load(written(tmp_path, f"{other}command = []\n"))
