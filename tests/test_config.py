"""A bad value is refused with the file, the line and the fix; every value tells where it came from."""

from pathlib import Path

import pytest

from handrail.config import BadConfig, Config, load, settings


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
        ('[[rules]]\neffect = "allow"\n', 1, "there is no setting `rules`"),
        ("server.port = 0\n", 1, "server.port"),
        ('[command]\nenv_pass = ["A=B"]\n', 2, "command.env_pass"),
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
    assert "Mend or remove" in sentence


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"not valid TOML.*line 1"):
        load(written(tmp_path, "port = = 3\n"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfig, match="cannot be read"):
        load(path)


def test_every_value_tells_where_it_came_from(tmp_path: Path) -> None:
    path = written(tmp_path, "human_in_the_loop = false\n[server]\nport = 9000\n")
    origins = {setting.name: setting.origin for setting in settings(path)}
    assert origins["human_in_the_loop"] == f"{path}:1"
    assert origins["server.port"] == f"{path}:3"
    assert origins["command.stop_grace"] == "default"
