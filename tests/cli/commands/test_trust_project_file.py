"""A project's file, as it is seen before it is trusted."""

import hashlib
from pathlib import Path

import pytest

from handrail.cli.commands.trust import FILE, LARGEST, describe_allowances, read_project_file
from handrail.cli.failure import Failure

TEXT = """\
default_policy = "allow"
human_in_the_loop = false
[[rules]]
effect = "allow"
command = "make\\u001b[2J"
note = "two\\nlines"
[[rules]]
effect = "deny"
command = "git push"
[[rules]]
effect = "allow"
tool = "write_file"
pattern = "docs/**"
agent = "claude-*"
expires = 2027-01-31
"""


def write(folder: Path, content: bytes) -> Path:
    file = folder / FILE
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    return file


def test_what_it_allows_is_told_with_its_lines_and_what_it_forbids_holds_already(tmp_path: Path) -> None:
    write(tmp_path, TEXT.encode())
    found = read_project_file(tmp_path)
    assert found is not None
    assert found.sha == hashlib.sha256(TEXT.encode()).hexdigest()
    assert describe_allowances(found.config) == [
        "allow everything else, except high risk (default_policy = allow)",
        "allow low risk (human_in_the_loop = false)",
        "allow command make\x1b[2J   (two\\nlines)   (line 3)",
        "allow tool write_file, pattern docs/**, agent claude-*, until 2027-01-31   (line 10)",
    ]


def test_a_file_that_only_tightens_loosens_nothing(tmp_path: Path) -> None:
    write(
        tmp_path,
        b'default_policy = "deny"\nhuman_in_the_loop = true\n[[rules]]\neffect = "ask"\ntool = "x"\n',
    )
    found = read_project_file(tmp_path)
    assert found is not None
    assert describe_allowances(found.config) == []
    assert read_project_file(tmp_path / "without") is None


def test_a_file_that_is_wrong_a_link_or_too_large_is_told(tmp_path: Path) -> None:
    file = write(tmp_path, b"[[rules]]\neffect = 'never'\n")
    with pytest.raises(Failure, match=r"cannot be trusted while its file is wrong: .* line 2"):
        read_project_file(tmp_path)
    file.write_bytes(b"\xff")
    with pytest.raises(Failure, match="cannot be trusted"):
        read_project_file(tmp_path)
    file.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(Failure, match="larger than"):
        read_project_file(tmp_path)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Failure, match="cannot be read"):
        read_project_file(tmp_path)
