import json
import os
import stat
from pathlib import Path

import pytest
from pydantic_ai.messages import BinaryContent, ModelRequest, ModelResponse, TextPart, UserPromptPart

from handrail.own_agent import session_files
from handrail.own_agent.session_files import NoSuchSession, SessionFiles
from handrail.own_agent.tools.agent_tool import CallDisplay


def said(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(text)])


def answered(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)])


def test_what_is_kept_is_there_again(tmp_path: Path) -> None:
    sessions = SessionFiles(tmp_path / "agent")
    kept = sessions.new("/project")
    picture = BinaryContent(b"\x89PNG", media_type="image/png")
    messages = [ModelRequest([UserPromptPart(["look", picture])]), answered("I see")]
    kept.title("look")
    for message in messages:
        kept.add(message)
    kept.set("model", "openai:some")
    kept.spent("0.25")
    kept.shown("c1", CallDisplay(title="Read a.py", kind="read", paths=("a.py",)))

    again = sessions.open(kept.id)

    request, response = again.taken()
    words, kept_picture = request.parts[0].content
    assert (words, kept_picture.data, kept_picture.media_type) == ("look", b"\x89PNG", "image/png")
    assert response.parts == messages[1].parts
    assert again.record.cwd == "/project"
    assert again.record.title == "look"
    assert again.record.settings == {"model": "openai:some"}
    assert again.record.spent == "0.25"
    assert again.record.shown == {"c1": CallDisplay(title="Read a.py", kind="read", paths=("a.py",))}


def test_conversations_are_private_to_their_user(tmp_path: Path) -> None:
    kept = SessionFiles(tmp_path / "agent").new("/project")
    kept.add(said("hello"))
    kept.replace([said("hello")])

    assert stat.S_IMODE((tmp_path / "agent").stat().st_mode) == 0o700
    files = list((tmp_path / "agent").iterdir())
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600]


def test_a_line_that_a_crash_left_half_written_is_dropped_and_written_over(tmp_path: Path) -> None:
    sessions = SessionFiles(tmp_path)
    kept = sessions.new("/project")
    kept.add(said("one"))
    with (tmp_path / f"{kept.id}.jsonl").open("ab") as file:
        file.write(b'{"message": {"parts": [{"cont')

    again = sessions.open(kept.id)
    assert [each.parts[0].content for each in again.taken()] == ["one"]
    again.add(answered("two"))

    assert [type(each) for each in sessions.open(kept.id).taken()] == [ModelRequest, ModelResponse]


def test_a_conversation_that_was_summed_up_takes_the_place_of_the_old_one_at_once(tmp_path: Path) -> None:
    sessions = SessionFiles(tmp_path)
    kept = sessions.new("/project")
    kept.title("long")
    kept.set("model", "m")
    for number in range(20):
        kept.add(said(str(number)))
    before = (tmp_path / f"{kept.id}.jsonl").stat().st_ino
    kept.replace([said("in short")])
    kept.add(answered("yes"))

    again = sessions.open(kept.id)
    assert len(again.taken()) == 2
    assert (again.record.title, again.record.settings) == ("long", {"model": "m"})
    assert (tmp_path / f"{kept.id}.jsonl").stat().st_ino != before


@pytest.mark.parametrize("id", ["nothing-there", "../../../etc/passwd", "", "a/b", "x" * 300])
def test_an_id_that_is_none_of_ours_is_no_session(tmp_path: Path, id: str) -> None:
    with pytest.raises(NoSuchSession):
        SessionFiles(tmp_path).open(id)
    SessionFiles(tmp_path).delete(id)


def test_a_file_of_something_else_is_no_session(tmp_path: Path) -> None:
    (tmp_path / "20260101-aaaaaaaa.jsonl").write_text("[]\nnonsense\n")
    with pytest.raises(NoSuchSession):
        SessionFiles(tmp_path).open("20260101-aaaaaaaa")


@pytest.mark.parametrize(
    "line", ['{"settings": 7}', '{"shown": {"c": {}}}', '{"shown": [1]}', '{"cwd": "", "settings": null}']
)
def test_a_line_of_another_shape_is_no_session(tmp_path: Path, line: str) -> None:
    kept = SessionFiles(tmp_path).new("/project")
    with (tmp_path / f"{kept.id}.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(NoSuchSession):
        SessionFiles(tmp_path).open(kept.id)


def test_messages_of_another_shape_are_no_session(tmp_path: Path) -> None:
    sessions = SessionFiles(tmp_path)
    kept = sessions.new("/project")
    with (tmp_path / f"{kept.id}.jsonl").open("a") as file:
        file.write(json.dumps({"message": {"kind": "sermon"}}) + "\n")
    with pytest.raises(NoSuchSession):
        sessions.open(kept.id).taken()


def test_the_list_has_what_was_said_last_first_and_nothing_of_other_folders(tmp_path: Path) -> None:
    sessions = SessionFiles(tmp_path)
    for number, cwd in enumerate(["/a", "/b", "/a"]):
        kept = sessions.new(cwd)
        kept.title(f"title {number}")
        os.utime(tmp_path / f"{kept.id}.jsonl", (number, number))
    sessions.new("/a")  # in which nothing was said

    assert [each.title for each in sessions.listed(None)[0]] == ["title 2", "title 1", "title 0"]
    assert [each.title for each in sessions.listed("/a")[0]] == ["title 2", "title 0"]


def test_a_long_list_comes_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_files, "LISTED", 2)
    sessions = SessionFiles(tmp_path)
    for number in range(3):
        sessions.new("/a").title(str(number))

    first, more = sessions.listed(None)
    assert (len(first), more) == (2, 2)
    rest, more = sessions.listed(None, 2)
    assert (len(rest), more) == (1, None)


def test_what_is_deleted_is_gone(tmp_path: Path) -> None:
    sessions = SessionFiles(tmp_path)
    kept = sessions.new("/a")
    sessions.delete(kept.id)
    with pytest.raises(NoSuchSession):
        sessions.open(kept.id)


def test_a_disk_that_takes_nothing_more_stops_nobody_and_is_made_up_for_later(tmp_path: Path) -> None:
    sessions = SessionFiles(tmp_path / "agent")
    kept = sessions.new("/project")
    kept.add(said("one"))
    (tmp_path / "agent").rename(tmp_path / "away")
    kept.add(said("two"))
    assert kept.problem is not None
    (tmp_path / "away").rename(tmp_path / "agent")
    kept.replace([said("one"), said("two")])

    assert kept.problem is None
    assert len(sessions.open(kept.id).taken()) == 2
