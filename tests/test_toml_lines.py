"""Line numbers of settings in a TOML file."""

from handrail.toml_lines import find_line


def test_a_setting_is_found_by_its_key_or_else_by_its_table() -> None:
    text = '[server]\nport = 1\n\n[[servers]]\nname = "a"\n[[servers]]\nname = "b"\n'

    assert find_line(text, ["server", "port"]) == 2
    assert find_line(text, ["servers", "1", "name"]) == 7
    assert find_line(text, ["servers", "1", "command"]) == 6
