"""A file system with links as a pure model, made real: where a path leads is worked out without asking the kernel.

Owns the model, its random layouts and paths. It imports nothing of Handrail, so that it can be held against it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

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
