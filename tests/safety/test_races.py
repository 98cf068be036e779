"""Files and links swapped under a call that writes or reads, at every point of its way: none wins.

The points are functions of the product, where its thread is stopped while the swap is made; that the swap happened, and
where, is part of each race. Whoever comes after the write has changed the file once more, and keeps that.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import anyio
import pytest
from tests.support.race import RACES, Pauses, Point, Race, rounds

from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.gate.rules.rules import Rules
from handrail.store.blobs import Blobs
from handrail.store.journal import open_journal
from handrail.store.values import Caller
from handrail.tools import workspace
from handrail.tools.files import atomic_write, target
from handrail.tools.files import target as since
from handrail.tools.files.edit_tools import ApplyDiff, WriteFile, WriteFileInput
from handrail.tools.files.file_change import ChangeTool
from handrail.tools.files.read_file import ReadFile
from handrail.tools.workspace import Place

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

Writing = ChangeTool[WriteFileInput]
PLANNED = (
    None,
    Point(Writing.plan, "enters"),
    Point(workspace.Workspace.place, "leaves"),
    Point(target.look, "leaves"),
)
"""Up to the re-check: while the question is open, and as the call is worked out once more."""
CHECKED = (
    Point(Call.start, "enters"),
    Point(Writing._carry_out, "enters"),  # pyright: ignore[reportPrivateUsage]
    Point(target.Folder.open, "leaves"),
)
WRITTEN = (
    Point(atomic_write._fill, "leaves"),  # pyright: ignore[reportPrivateUsage]
    Point(since.check_unchanged, "leaves"),
)
EXCHANGED = (
    Point(atomic_write.exchange, "leaves"),
    Point(since.check_unchanged, "leaves", 2),
)
"""What comes now comes after the write, and is a change of its own."""
DELETION = "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-before\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def pauses() -> Iterator[Pauses]:
    with Pauses() as entered:
        yield entered


@pytest.fixture
async def race(home: Path, root: Path, pauses: Pauses) -> AsyncGenerator[Race]:
    """The real gate with these tools; whoever races against it works in the same folders."""
    caller = Caller(door="stdio", client="test", key="test", workspace=str(root))
    own, blobs = (home,), Blobs(home / "blobs")
    tools = [ReadFile(own), WriteFile(own, blobs), ApplyDiff(own, blobs)]
    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        anyio.create_task_group() as group,
    ):
        rules = Rules.with_default(journal, trusted=[str(root)])
        yield Race(Gate(journal, rules, {tool.name: tool for tool in tools}, group), caller, pauses)
        group.cancel_scope.cancel()


def overwritten(file: Path) -> None:
    file.write_text("theirs\n")


def renamed_over(file: Path) -> None:
    other = file.with_name("other")
    other.write_text("theirs\n")
    other.rename(file)


def made_anew(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.write_text("theirs\n")


FILE_WAYS = (overwritten, renamed_over, made_anew)
FILE_RACES = (
    *(("write_file", point, way, point in EXCHANGED) for point, way in product((*PLANNED, *CHECKED, *WRITTEN, *EXCHANGED), FILE_WAYS)),
    *(("apply_diff", point, way, point == EXCHANGED[1]) for point, way in product((*PLANNED, *CHECKED, WRITTEN[1], EXCHANGED[1]), FILE_WAYS)),
    *(("new", point, way, point.when == "leaves" and point.function is atomic_write.appear) for point, way in product((*CHECKED, *WRITTEN, Point(atomic_write.appear, "enters"), Point(atomic_write.appear, "leaves")), FILE_WAYS)),
)  # fmt: skip
"""The tool, the point, what somebody does to the file there, and whether the call had done its work by then."""


async def test_what_somebody_else_writes_meanwhile_is_never_lost(race: Race, root: Path) -> None:
    seen: Counter[str] = Counter()
    for number, (tool, point, way, late) in rounds(FILE_RACES):
        file = root / str(number) / "a.txt"
        file.parent.mkdir()
        if tool != "new":
            file.write_text("before\n")
        asked = {"diff": DELETION} if tool == "apply_diff" else {"content": "ours\n"}
        name, path = ("write_file" if tool == "new" else tool), f"{number}/a.txt"
        outcome = await race.run(name, {"path": path, **asked}, point, file, partial(way, file))
        story = f"{tool}, {way.__name__}, {point}: {outcome}"
        assert file.read_text() == "theirs\n", story
        assert [path.name for path in file.parent.iterdir()] == ["a.txt"], story
        assert outcome.ending == ("done" if late else "failed"), story
        seen[f"{tool} {outcome.ending}"] += 1
    assert sum(seen.values()) == RACES
    assert min(seen.values()) > 5, seen


READ = (
    Point(workspace.Workspace.place, "leaves"),
    Point(ReadFile.run, "enters"),
    Point(Place.open_file, "enters"),
    Point(Place._open, "enters"),  # pyright: ignore[reportPrivateUsage]
)
ASKED = {"write_file": {"content": "ours\n"}, "apply_diff": {"diff": DELETION}, "read_file": {}}
LINK_RACES = (
    *(("write_file", point) for point in (*PLANNED, *CHECKED, *WRITTEN, *EXCHANGED)),
    *(("apply_diff", point) for point in (*PLANNED, *CHECKED, WRITTEN[1], EXCHANGED[1])),
    *(("read_file", point) for point in READ),
)


def link_for_file(inside: Path, outside: Path) -> None:
    (inside / "a.txt").unlink(missing_ok=True)
    (inside / "a.txt").symlink_to(outside / "a.txt")


def link_for_folder(inside: Path, outside: Path) -> None:
    inside.rename(inside.with_name("was"))
    inside.symlink_to(outside)


async def test_no_link_that_is_put_there_meanwhile_leads_out(race: Race, root: Path, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for number, ((tool, point), way) in rounds(tuple(product(LINK_RACES, (link_for_file, link_for_folder)))):
        inside, outside = root / str(number) / "sub", tmp_path / "outside" / str(number)
        victim = (
            "secret\n" if tool == "read_file" else "before\n"
        )  # so that its content does not give it away
        for folder, content in ((inside, "before\n"), (outside, victim)):
            folder.mkdir(parents=True)
            (folder / "a.txt").write_text(content)
        asked = {"path": f"{number}/sub/a.txt", **ASKED[tool]}
        swapped = inside / "a.txt" if way is link_for_file else inside
        outcome = await race.run(tool, asked, point, swapped, partial(way, inside, outside))
        story = f"{tool}, {way.__name__}, {point}: {outcome}"
        assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("a.txt", victim)], story
        assert swapped.is_symlink(), story
        assert "secret" not in str(outcome), story
        assert outcome.ending in (("failed",) if point in PLANNED else ("done", "failed")), story
        assert not list(inside.parent.rglob(".handrail-*")), story
        seen[f"{tool} {outcome.ending}"] += 1
    assert sum(seen.values()) == RACES
    assert min(seen["write_file failed"], seen["apply_diff failed"], seen["read_file failed"]) > 8, seen


async def test_a_call_that_nobody_races_against_is_done(race: Race, root: Path) -> None:
    """So that the races above are lost to the swap, and to nothing else."""
    (root / "a.txt").write_text("before\n")
    elsewhere = root / "elsewhere"
    for point in (*PLANNED, *CHECKED, *WRITTEN, *EXCHANGED):
        elsewhere.unlink(missing_ok=True)
        asked = {"path": "a.txt", "content": f"{point}\n"}
        outcome = await race.run("write_file", asked, point, elsewhere, elsewhere.touch)
        assert outcome.ending == "done", outcome
        assert (root / "a.txt").read_text() == asked["content"]
