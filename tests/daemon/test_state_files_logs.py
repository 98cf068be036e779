"""The log is private, rotates, and keeps quiet what others would log of clients."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.daemon import state_files


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    for handler in root.handlers:
        if handler not in before:
            handler.close()
    root.handlers[:] = before
    root.setLevel(level)


def test_the_log_is_private_even_when_an_older_one_was_not(tmp_path: Path) -> None:
    (tmp_path / "daemon.log").touch(mode=0o644)
    state_files.start_logging(tmp_path)
    assert (tmp_path / "daemon.log").stat().st_mode & 0o777 == 0o600


def test_the_log_never_fills_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "LOG_BYTES", 2000)
    state_files.start_logging(tmp_path)
    for number in range(500):
        logging.getLogger("handrail.test").info("line %d", number)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2000 * (state_files.LOGS_KEPT + 1)


def test_what_libraries_say_of_clients_is_not_logged(tmp_path: Path) -> None:
    state_files.start_logging(tmp_path)
    logging.getLogger("mcp.server").warning("a client's input")
    logging.getLogger("handrail.gate").warning("ours")
    text = (tmp_path / "daemon.log").read_text()
    assert "ours" in text
    assert "input" not in text


def test_what_an_exception_said_is_not_logged_but_where_it_happened_is(tmp_path: Path) -> None:
    state_files.start_logging(tmp_path)
    try:
        raise ValueError("a secret input")  # noqa: TRY301  (it is what is tested)
    except ValueError:
        logging.getLogger("handrail.gate").exception("a tool broke")
    text = (tmp_path / "daemon.log").read_text()
    assert "a tool broke" in text
    assert "ValueError" in text
    assert "daemon/test_state_files_logs.py" in text
    assert "a secret input" not in text.replace('raise ValueError("a secret input")', "")
