"""Where paths lead, against a model: none that is said to lie in the workspace leads out of it, and none opens elsewhere."""

import os
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.safety.worlds import File, Folder, Leads, World

from handrail.gate.tool import Refusal
from handrail.tools import open_beneath
from handrail.tools.files.target import look
from handrail.tools.workspace import Place, Workspace

WORLDS, PATHS = 200, 100
"""20,000 paths, each in a layout of some fifty folders, files and links."""
SECONDS = 60.0
KERNELS_LINKS = 40
"""The kernel follows no more for one path."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_no_path_leads_or_opens_anywhere_but_where_the_model_says(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "walk":
        monkeypatch.setattr(open_beneath, "has_openat2", lambda: False)
    elif not open_beneath.has_openat2():
        pytest.skip("this kernel has no openat2")
    seen: Counter[str] = Counter()
    began = time.monotonic()
    for number in range(WORLDS // 2):
        seed = f"{way} {number}"
        world = World(Path(os.path.realpath(tmp_path)) / str(number), Random(seed))
        world.make()
        workspace = Workspace(str(world.base / "shop"), (world.own,))
        for path in world.paths(PATHS):
            try:
                seen.update(check(world, workspace, path))
            except AssertionError as error:
                raise AssertionError(f"world {seed!r}, path {path!r}: {error}") from error
    assert seen["paths"] == WORLDS * PATHS // 2
    assert time.monotonic() - began < SECONDS
    enough = (
        "inside",
        "outside",
        "through links",
        "file opened",
        "folder opened",
        "nothing there",
        "protected",
    )
    assert {kind: seen[kind] for kind in enough if seen[kind] < 500} == {}, seen
    assert min(seen["goes round"], seen["the kernel agrees"], seen["could be written"]) > 100, seen


def check(world: World, workspace: Workspace, path: str) -> list[str]:
    """Everything that must hold of one path; what kind of path it was."""
    expected = world.leads(path)
    try:
        place = workspace.place(path)
    except Refusal:
        assert expected.loops, "it was refused"
        return ["paths", "goes round"]
    if expected.loops:  # the kernel goes nowhere; what is opened in spite of that must be what is said
        opened = _opened(place)
        assert opened is None or opened[0] == place.path
        assert place.inside == world.is_inside(tuple(place.path.split("/")[1:]))
        return ["paths", "goes round"]
    assert place.path == expected.path
    assert place.inside == world.is_inside(expected.parts)
    assert place.protected == world.is_protected(expected.parts)
    return [
        "paths",
        "inside" if place.inside else "outside",
        *(["through links"] if expected.links else []),
        *(["protected"] if place.protected else []),
        *_check_kernel(world, path, expected),
        *_check_opening(place, expected),
        *_check_writing(world, place, expected),
    ]


def _check_kernel(world: World, path: str, expected: Leads) -> list[str]:
    """Where the kernel follows a path at all, it comes out where the model does."""
    if expected.links >= KERNELS_LINKS:
        return []
    try:
        found = os.stat(os.path.join(world.base, "shop", path))  # noqa: PTH116, PTH118 - as the kernel takes it
    except OSError:
        return []
    assert os.path.samestat(found, os.lstat(expected.path)), "the model is wrong"
    return ["the kernel agrees"]


def _check_opening(place: Place, expected: Leads) -> list[str]:
    """What is opened is what lies at the end of the path, and nothing else is."""
    opened = _opened(place)
    match expected.node:
        case None:
            assert opened is None, "something was opened where nothing is"
            return ["nothing there"]
        case File(content):
            assert opened == (expected.path, content)
            return ["file opened"]
        case Folder():
            assert opened == (expected.path, None)
            return ["folder opened"]


def _opened(place: Place) -> tuple[str, bytes | None] | None:
    """The real path of what is opened, as the kernel knows it, and its content when it is a file."""
    for open_it in (place.open_file, place.open_folder):
        try:
            descriptor = open_it()
        except Refusal:
            continue
        try:
            return _path_of(descriptor), os.read(descriptor, 1000) if open_it == place.open_file else None
        finally:
            os.close(descriptor)
    return None


def _path_of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _check_writing(world: World, place: Place, expected: Leads) -> list[str]:
    """A write would go into the nearest folder that is there, which lies where the model says."""
    if isinstance(expected.node, Folder) or not expected.parts:
        return []
    try:
        target = look(place)
    except Refusal:
        return []
    parts, node = world.nearest(expected.parts[:-1])
    assert isinstance(node, Folder)
    assert target.folder.path == "/" + "/".join(parts)
    descriptor = target.folder.open(place)
    try:
        assert _path_of(descriptor) == target.folder.path
    finally:
        os.close(descriptor)
    assert target.made == tuple(
        "/" + "/".join(expected.parts[:count]) for count in range(len(parts) + 1, len(expected.parts))
    )
    return ["could be written"]
