"""The little project in which the scripted agent works, and the place beside it where it should not.

Owns those files; they are gone when the demo ends.
"""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

README = """\
# Orchard

Counts apples. `python apples.py` prints how many there are.
"""

APPLES = '''\
"""How many apples there are."""

TREES = {"north": 12, "south": 7}


def count(trees):
    total = 0
    for name in trees:
        total = total + trees[name]
    return total


def describe(trees):
    """One line for each tree, in the order of the alphabet."""
    lines = []
    for name in names(trees):
        lines.append(f"{name}: {trees[name]}")
    return lines


def names(trees):
    found = []
    for name in trees:
        found.append(name)
    found.sort()
    return found


def largest(trees):
    """The most apples on one tree."""
    return max(trees.values())


# TODO: say which tree has the most
print(count(TREES))
'''

EDIT = """\
<<<<<<< SEARCH
    total = 0
    for name in trees:
        total = total + trees[name]
    return total
=======
    return sum(trees.values())
>>>>>>> REPLACE
<<<<<<< SEARCH
    found = []
    for name in trees:
        found.append(name)
    found.sort()
    return found
=======
    return sorted(trees)
>>>>>>> REPLACE
<<<<<<< SEARCH
print(count(TREES))
=======
print(count(TREES), "apples, and not one of them is bad")
>>>>>>> REPLACE
"""
"""Three hunks; the last is one that a person may not want."""

PEARS = '''\
"""How many pears there are; the sister of apples.py."""

TREES = {"east": 5, "west": 9}


def best(trees):
    """The tree with the most."""
    return max(trees, key=trees.get)


print(sum(TREES.values()), "pears, most of them in the", best(TREES))
'''

GATE = '''\
"""Opens the gate to a tree."""

from getpass import getpass

tree = input("Which tree, north or south? ")
word = getpass("The gate's secret word (any will do): ")
print(f"The gate to the {tree} tree is open." if word else "The gate stays shut.")
raise SystemExit(not word)
'''


@dataclass(frozen=True, slots=True)
class Scene:
    """The project, and a folder outside of it."""

    project: Path
    elsewhere: Path


@contextmanager
def scene() -> Generator[Scene]:
    with tempfile.TemporaryDirectory(prefix="handrail-demo-", ignore_cleanup_errors=True) as base:
        made = Scene(Path(base).resolve() / "orchard", Path(base).resolve() / "elsewhere")
        made.project.mkdir()
        (made.project / "README.md").write_text(README)
        (made.project / "apples.py").write_text(APPLES)
        (made.project / "gate.py").write_text(GATE)
        (made.elsewhere / "old-harvests").mkdir(parents=True)
        (made.elsewhere / "old-harvests" / "last-year.txt").write_text("19 apples\n")
        yield made
