"""Where paths lead, against a model: none that is said to lie in the workspace leads out of it, and none opens elsewhere."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from handrail.gate.tool import Refusal
from handrail.tools import open_beneath
from handrail.tools.files.target import look
from handrail.tools.workspace import Place, Workspace

NAMES = (
    "ka",
    "Ka",
    "KA",
    "k\u00e4",
    "ka\u0308",
    "ka.",
    "...",
    ".ka",
    "k a",
    "shop",
    "-",
    "\u202eka",
    "ka" * 40,
)
PROTECTED = (".ssh", ".SSH", ".bashrc", ".git", "hooks", "own", "OWN")
MISSING = "nowhere"
LINKS_MAX = 400
"""Links followed for one path; more is a chain that comes back to itself."""


@dataclass(frozen=True)
class File:
    content: bytes


@dataclass(frozen=True)
class Link:
    target: str


@dataclass
class Folder:
    held: "dict[str, Folder | File | Link]" = field(default_factory=dict[str, "Folder | File | Link"])


Node = Folder | File | Link


@dataclass(frozen=True, slots=True)
class Leads:
    """Where a path leads."""

    parts: tuple[str, ...]
    """From the root of the file system, free of links."""
    node: Folder | File | None
    """None when there is nothing."""
    links: int
    """How many were followed."""
    loops: bool = False

    @property
    def path(self) -> str:
        return "/" + "/".join(self.parts)


class World:
    """A workspace `shop`, its neighbours `shop-evil` and `Shop`, and links among them; `base` is real and free of links."""

    def __init__(self, base: Path, random: Random) -> None:
        self.base = base
        self.work = (*base.parts[1:], "shop")
        self.own = base / "own"
        self._random = random
        self.top = Folder({name: Folder() for name in ("shop", "shop-evil", "Shop", "own")})
        self.root = self.top
        for part in reversed(base.parts[1:]):
            self.root = Folder({part: self.root})
        self._fill()

    def make(self) -> None:
        """Make it real."""
        self._make(self.base, self.top)

    def leads(self, path: str) -> Leads:
        """Where a path leads that begins in the workspace: names one by one, `..` to where one really is."""
        at: list[str] = [] if path.startswith("/") else list(self.work)
        rest, followed = path.split("/"), 0
        while rest:
            part = rest.pop(0)
            if part in ("", "."):
                continue
            if part == "..":
                at = at[:-1]
                continue
            node = self._find([*at, part])
            if not isinstance(node, Link):
                at.append(part)
                continue
            followed += 1
            if followed > LINKS_MAX:
                return Leads((*at, part, *rest), None, followed, loops=True)
            rest = node.target.split("/") + rest
            at = [] if node.target.startswith("/") else at
        node = self._find(at)
        assert not isinstance(node, Link)
        return Leads(tuple(at), node, followed)

    def is_inside(self, parts: tuple[str, ...]) -> bool:
        return parts[: len(self.work)] == self.work

    def is_protected(self, parts: tuple[str, ...]) -> bool:
        """By the names that these worlds have."""
        lower = [part.lower() for part in parts]
        git = lower[lower.index(".git") + 1 :] if ".git" in lower else ["-"]
        own = [part.lower() for part in self.own.parts[1:]]
        named = ".ssh" in lower or lower[-1:] == [".bashrc"] or not git or "hooks" in git
        return named or lower[: len(own)] == own

    def nearest(self, parts: tuple[str, ...]) -> tuple[tuple[str, ...], Node | None]:
        """What is there of a path that leads to nothing, as far as it goes."""
        while parts and self._find(list(parts)) is None:
            parts = parts[:-1]
        return parts, self._find(list(parts))

    def paths(self, count: int) -> Iterator[str]:
        """Some that follow what is there, some of any names."""
        for _ in range(count):
            parts = self._walk() if self._random.random() < 0.7 else self._any()
            path = "/".join(parts)
            begin = self._random.choice(
                ("", "", "", "./", f"{self.base}/shop/", f"{self.base}/", f"//{self.base}//shop/../")
            )
            yield f"{begin}{path}{self._random.choice(('', '', '', '/', '/.', '//'))}" or "."

    def _walk(self) -> list[str]:
        """From one that is there to the next."""
        parts: list[str] = []
        for _ in range(self._random.randint(1, 7)):
            here = self.leads("/".join(parts) or ".").node
            names = list(here.held) if isinstance(here, Folder) else []
            ways = [*names, *names, "..", "."] if names else ["..", MISSING]
            parts.append(MISSING if self._random.random() < 0.05 else self._random.choice(ways))
        return parts

    def _any(self) -> list[str]:
        names = (*NAMES, *PROTECTED, "..", "..", ".", "", "shop-evil", "Shop", MISSING)
        return [self._random.choice(names) for _ in range(self._random.randint(1, 8))]

    def _find(self, parts: list[str]) -> Node | None:
        node: Node | None = self.root
        for part in parts:
            node = node.held.get(part) if isinstance(node, Folder) else None
        return node

    def _fill(self) -> None:
        folders: list[tuple[str, Folder]] = [
            (name, node) for name, node in self.top.held.items() if isinstance(node, Folder)
        ]
        for _ in range(self._random.randint(8, 18)):
            path, folder = self._random.choice(folders)
            name = self._random.choice(NAMES + PROTECTED)
            if name not in folder.held:
                made = Folder()
                folder.held[name] = made
                folders.append((f"{path}/{name}", made))
        for path, folder in folders:
            for name in self._random.sample(NAMES + PROTECTED, 3):
                if name not in folder.held:
                    new = Link(self._target(folders, name)) if self._random.random() < 0.6 else None
                    folder.held[name] = new or File(f"{path}/{name}".encode())

    def _target(self, folders: list[tuple[str, Folder]], own: str) -> str:
        """Anywhere: up, across, absolute, through other links, to itself, to nothing."""
        path, folder = self._random.choice(folders)
        name = self._random.choice([*folder.held, *NAMES, ".", "..", MISSING])
        to = f"{path}/{name}"
        up = "../" * self._random.randint(0, 4)
        if self._random.random() < 0.05:
            return own
        return self._random.choice(
            (f"{self.base}/{to}", f"{up}{to}", f"{up}{name}", name, up or ".", f"./{name}/../{name}")
        )

    def _make(self, at: Path, folder: Folder) -> None:
        at.mkdir(exist_ok=True)
        for name, node in folder.held.items():
            match node:
                case Folder():
                    self._make(at / name, node)
                case File(content):
                    (at / name).write_bytes(content)
                case Link(target):
                    (at / name).symlink_to(target)


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
