"""read_file, through the real gate."""

import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tool_runner import BOUND, ToolRunner, result_of

from handrail.gate.call import Call
from handrail.gate.gate import Request
from handrail.gate.tool import Image, Refusal
from handrail.tools.files import line_window
from handrail.tools.files.read_file import IMAGE_MAX, ReadFile, ReadFileInput

pytestmark = pytest.mark.anyio


async def test_lines_are_numbered_and_the_data_holds_the_same_without_numbers(desk: ToolRunner) -> None:
    (desk.root / "a.py").write_text("one\ntwo\n")
    result = await desk.result("read_file", path="a.py")
    assert result.text == "     1→one\n     2→two"
    assert result.data == {
        "path": "a.py",
        "content": "one\ntwo\n",
        "start_line": 1,
        "end_line": 2,
        "total_lines": 2,
        "truncated": False,
        "size": 8,
    }


async def test_offset_and_limit_choose_lines_and_say_how_to_go_on(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    result = await desk.result("read_file", path="a.txt", offset=10, limit=2)
    assert result.text == "    10→line 10\n    11→line 11\n[Lines 10 to 11 of 100. Go on with offset=12.]"
    assert result.data["truncated"] is True
    assert result.data["total_lines"] == 100


async def test_json_is_given_on_request(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("ä\n")
    result = await desk.result("read_file", path="a.txt", response_format="json")
    assert result.text.startswith('{"path": "a.txt", "content": "ä\\n"')


async def test_two_thousand_lines_are_given_unless_more_are_asked_for(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("x\n" * 2500)
    assert (await desk.result("read_file", path="a.txt")).data["end_line"] == 2000
    assert (await desk.result("read_file", path="a.txt", limit=2400)).data["end_line"] == 2400


async def test_a_long_line_is_cut_and_said_so(desk: ToolRunner) -> None:
    (desk.root / "a.js").write_text("short\n" + "x" * 5000 + "\nend\n")
    result = await desk.result("read_file", path="a.js")
    assert result.text.splitlines()[1] == "     2→" + "x" * 2000
    assert "[Cut after 2000 characters: line 2.]" in result.text
    assert result.data["truncated"] is True


async def test_an_answer_stays_small_whatever_was_asked(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text(("y" * 1000 + "\n") * 3000)
    result = await desk.result("read_file", path="a.txt", limit=3000)
    assert len(result.text) < 300_000
    assert "as much as fits in one answer. Go on with offset=262." in result.text


async def test_a_large_file_is_read_anywhere_and_counted(desk: ToolRunner) -> None:
    (desk.root / "big.txt").write_text("".join(f"{n}\n" for n in range(1, 200_001)))
    result = await desk.result("read_file", path="big.txt", offset=199_999)
    assert result.data["content"] == "199999\n200000\n"
    assert result.data["total_lines"] == 200_000


async def test_a_huge_file_is_refused_unless_lines_are_named(desk: ToolRunner) -> None:
    with (desk.root / "huge.log").open("wb") as file:
        file.write(b"first\nsecond\n" * 1000)
        file.truncate(60 << 20)
    said = await desk.refusal("read_file", path="huge.log")
    assert said.startswith("huge.log is huge (62,914,560 bytes). Say which lines with offset and limit")
    assert (await desk.result("read_file", path="huge.log", limit=1)).data["content"] == "first\n"


async def test_endings_of_lines_and_a_missing_last_newline_are_kept_in_the_data(desk: ToolRunner) -> None:
    (desk.root / "dos.txt").write_bytes(b"one\r\ntwo")
    result = await desk.result("read_file", path="dos.txt")
    assert result.text == "     1→one\n     2→two"
    assert result.data["content"] == "one\r\ntwo"


async def test_bytes_that_are_not_utf8_are_shown_replaced_and_said(desk: ToolRunner) -> None:
    (desk.root / "latin.txt").write_bytes("café\n".encode("latin-1"))
    result = await desk.result("read_file", path="latin.txt")
    assert result.text == "     1→caf\ufffd\n[Some bytes are not UTF-8; they are shown as \ufffd.]"


@settings(deadline=None)
@given(
    raw=st.binary(max_size=200) | st.text(alphabet="ab\n\r\ufffdä\u2028", max_size=60).map(str.encode),
    first=st.integers(1, 9),
    limit=st.integers(1, 9),
    size=st.integers(1, 7),
)
def test_a_file_read_in_pieces_shows_the_same_as_one_read_at_once(
    raw: bytes, first: int, limit: int, size: int
) -> None:
    raw = raw.replace(b"\0", b"")
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        file.write(raw)
        windows: list[line_window.Window] = []
        for chunk in (line_window.CHUNK, size):
            patch.setattr(line_window, "CHUNK", chunk)
            os.lseek(file.fileno(), file.seek(0), os.SEEK_SET)
            windows.append(line_window.read_window(file.fileno(), first, limit, 1 << 20, lambda: None))
    assert windows[0] == windows[1]


async def test_an_empty_file_is_said_to_be_empty(desk: ToolRunner) -> None:
    (desk.root / "none.txt").touch()
    result = await desk.result("read_file", path="none.txt")
    assert result.text == "none.txt is empty."
    assert result.data["content"] == ""


async def test_a_line_past_the_end_is_said(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("one\n")
    result = await desk.result("read_file", path="a.txt", offset=7)
    assert result.text == "a.txt has only 1 line; there is no line 7."


async def test_a_missing_file_is_said_with_a_near_name(desk: ToolRunner) -> None:
    (desk.root / "src").mkdir()
    (desk.root / "src" / "server.py").touch()
    said = await desk.refusal("read_file", path="src/sever.py")
    assert said == f"There is no src/sever.py in the workspace {desk.root}. Did you mean src/server.py?"


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "image/jpeg"),
        (b"GIF89a\x01\x00\x01\x00\x00", "image/gif"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
async def test_an_image_is_shown_with_its_type_and_size(desk: ToolRunner, content: bytes, mime: str) -> None:
    (desk.root / "picture").write_bytes(content)
    calls: list[Call] = []
    request = Request(tool="read_file", input={"path": "picture"}, caller=desk.caller, patience=BOUND)
    reply = await desk.gate.submit(request, calls.append)
    assert reply.outcome is not None
    assert reply.outcome.result is not None
    assert calls[0].image == Image(mime, content)
    assert reply.outcome.result.data == {"path": "picture", "size": len(content), "mime_type": mime}
    assert f"is an image ({mime}, {len(content)} bytes)" in reply.outcome.result.text


async def test_an_image_that_is_too_large_for_a_model_is_refused(desk: ToolRunner) -> None:
    with (desk.root / "large.png").open("wb") as file:
        file.write(PNG)
        file.truncate(IMAGE_MAX + 1)
    refusal = await desk.refusal("read_file", path="large.png")
    assert f"is an image of {IMAGE_MAX + 1:,} bytes" in refusal


async def test_text_that_begins_like_an_image_is_text(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("GIF89a is a magic number\n")
    assert (await desk.result("read_file", path="a.txt")).text == "     1→GIF89a is a magic number"


async def test_a_directory_a_binary_file_and_a_kernel_file_are_refused_with_what_to_do(
    desk: ToolRunner,
) -> None:
    (desk.root / "dir").mkdir()
    (desk.root / "a.bin").write_bytes(b"\x7fELF\0\0")
    assert "is a directory, not a file. Use list_files" in await desk.refusal("read_file", path="dir")
    assert "is a binary file (6 bytes)" in await desk.refusal("read_file", path="a.bin")
    assert "the kernel's, not a file" in await desk.refusal("read_file", path="/proc/self/environ")


async def test_a_pipe_a_socket_and_a_device_are_never_opened(desk: ToolRunner, home: Path) -> None:
    os.mkfifo(desk.root / "pipe")
    assert "pipe is a named pipe" in await desk.refusal("read_file", path="pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "s"))
        (desk.root / "s").symlink_to(home / "s")
        said = (await desk.allowed("read_file", path="s")).message
    assert "is a socket" in said
    assert "is a device" in (await desk.allowed("read_file", path="/dev/zero")).message


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "The path is empty."),
        ("a\0b", "The path holds a NUL character"),
        ("x" * 300, "The path is too long: 300 bytes"),
        ("y/" * 3000, "The path is too long: 6000 bytes"),
    ],
)
async def test_a_path_that_cannot_be_is_refused(desk: ToolRunner, path: str, sentence: str) -> None:
    assert (await desk.refusal("read_file", path=path)).startswith(sentence)


async def test_wrong_inputs_are_said(desk: ToolRunner) -> None:
    assert "`lines` is not an input" in await desk.refusal("read_file", path="a", lines=3)
    assert "`path` is required" in await desk.refusal("read_file")
    assert "`offset`" in await desk.refusal("read_file", path="a", offset=0)


async def test_a_file_outside_the_workspace_is_read_only_after_a_person_allowed_it(
    desk: ToolRunner, tmp_path: Path
) -> None:
    (tmp_path / "outside.txt").write_text("far\n")
    for path in ("../outside.txt", str(tmp_path / "outside.txt")):
        call = await desk.waiting("read_file", path=path)
        assert call.approval is not None
        (claim,) = call.approval.asked.claims
        assert (claim.resource, claim.inside) == (str(tmp_path / "outside.txt"), False)
        assert result_of(await desk.allow(call)).data["content"] == "far\n"


async def test_nothing_is_told_about_the_outside_before_a_person_allowed_it(desk: ToolRunner) -> None:
    call = await desk.waiting("read_file", path="/there/is/no/such/file")
    assert (await desk.allow(call)).message.startswith("There is no /there/is/no/such/file. Look")


async def test_a_link_swapped_between_planning_and_reading_is_refused(
    desk: ToolRunner, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret\n")
    folder = desk.root / "sub"
    folder.mkdir()
    (folder / "a.txt").write_text("mine\n")
    tool = ReadFile()
    plan = await tool.plan(ReadFileInput(path="sub/a.txt"), desk.caller)

    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(Refusal, match="no longer what it was"):
        await tool.run(plan, desk.call("read_file"))

    (folder / "a.txt").unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    (tmp_path / "a.txt").write_text("secret\n")
    with pytest.raises(Refusal, match="no longer what it was"):
        await tool.run(plan, desk.call("read_file"))


async def test_without_a_workspace_a_relative_path_leads_nowhere_and_an_absolute_one_asks(
    desk: ToolRunner,
) -> None:
    (desk.root / "a.txt").write_text("one\n")
    lost = desk.without_workspace()
    assert "has no workspace" in await lost.refusal("read_file", path="a.txt")
    assert (
        result_of(await lost.allowed("read_file", path=str(desk.root / "a.txt"))).data["content"] == "one\n"
    )


def test_its_line_in_lists_is_short_and_printable() -> None:
    assert ReadFile().display(ReadFileInput(path="src/a.py")) == "Read src/a.py"
    assert ReadFile().display(ReadFileInput(path="a\x1b[2J\nb")) == "Read a\\x1b[2J\\nb"
    assert ReadFile().display(ReadFileInput(path=f"/{'deep/' * 40}a.py")).endswith("/deep/deep/a.py")
    assert ReadFile().display(ReadFileInput(path=f"/{'deep/' * 40}a.py")).startswith("Read …/deep/")
