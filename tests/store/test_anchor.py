"""Heads of the journal in an administrator's file, against a journal whose chain was recomputed."""

import os
from pathlib import Path

import pytest
from tests.store.test_rule_replay import STORY, alter, journal_with, recompute_chain
from tests.support.sample_events import JournalFiles

from handrail.store.anchor import check_anchor

pytestmark = pytest.mark.anyio


def anchor(folder: Path, *lines: str, mode: int = 0o644) -> Path:
    folder.mkdir(mode=0o755)
    file = folder / str(os.getuid())
    file.write_text("".join(f"{line}\n" for line in lines))
    file.chmod(mode)
    return folder


async def test_a_journal_that_goes_on_keeps_every_head(kept: JournalFiles, tmp_path: Path) -> None:
    await journal_with(kept, *STORY[:3])
    first = kept.head.read_text().strip()
    await journal_with(kept, *STORY[3:])
    folder = anchor(tmp_path / "heads", first, "not a head", kept.head.read_text().strip())
    assert check_anchor(kept.path, folder, os.getuid()) == []


async def test_a_recomputed_chain_is_detected(kept: JournalFiles, tmp_path: Path) -> None:
    await journal_with(kept, *STORY)
    folder = anchor(tmp_path / "heads", kept.head.read_text().strip())
    alter(kept, "UPDATE events SET payload = replace(payload, 'ls', 'rm') WHERE seq = 2")
    recompute_chain(kept)
    (fault,) = check_anchor(kept.path, folder, os.getuid())
    assert fault.startswith(f"The journal had reached event {len(STORY)}")


async def test_a_file_that_others_may_write_or_that_is_of_another_owner_is_ignored(
    kept: JournalFiles, tmp_path: Path
) -> None:
    await journal_with(kept, *STORY)
    wrong = f"5 {'0' * 64}"
    assert check_anchor(kept.path, anchor(tmp_path / "open", wrong, mode=0o666), os.getuid()) == []
    assert check_anchor(kept.path, anchor(tmp_path / "other", wrong), os.getuid() + 1) == []
    assert check_anchor(kept.path, tmp_path / "missing", os.getuid()) == []
