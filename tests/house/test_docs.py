"""The documents are true: links lead somewhere; commands, routes and error messages exist; images are small."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import typer.core
import typer.main
from tests.house.source import ROOT, modules, nodes

from handrail.cli.command_line import build_app
from handrail.server.openapi import describe

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
IMAGE_BYTES = 200_000
"""Limit for one image, so that a clone stays small."""
ONE_PAGE = 1200
"""Words of docs/architecture.md, which a new contributor reads in one sitting."""
_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
_COMMAND = re.compile(r"^handrail ([a-z-]+)", re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert [link for link in links(page) if not leads_somewhere(page, link)] == []


def links(page: Path) -> Iterator[str]:
    for match in _LINK.finditer(without_code(page.read_text())):
        yield match[1] or match[2]


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.is_file() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    """The ids that headings get on GitHub."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text()), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def test_the_architecture_fits_one_page() -> None:
    words = re.findall(r"[\w`/.*'-]*\w[\w`/.*'-]*", (ROOT / "docs" / "architecture.md").read_text())
    assert len(words) <= ONE_PAGE, "move choices to docs/decisions.md, and promises to docs/safety.md"


def test_images_are_small() -> None:
    large = [path.name for path in ROOT.glob("docs/images/*") if path.stat().st_size > IMAGE_BYTES]
    assert large == []


def test_the_command_reference_names_every_command_and_no_other() -> None:
    command = typer.main.get_command(build_app())
    assert isinstance(command, typer.core.TyperGroup)
    assert set(_COMMAND.findall((ROOT / "docs" / "cli.md").read_text())) == set(command.commands)


def test_every_message_in_troubleshooting_exists_in_the_source() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    pieces = [piece.strip() for quoted in re.findall("“([^”]+)”", text) for piece in quoted.split("…")]
    known = "\n".join(strings())
    assert [piece for piece in pieces if len(piece) > 3 and piece not in known] == []


def strings() -> Iterator[str]:
    """Every string literal of the package; of an f-string, its constant parts."""
    for module in modules():
        for node in nodes(module.path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_every_route_in_the_api_reference_exists() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    known = {
        f"{method.upper()} {path}" for path, methods in describe()["paths"].items() for method in methods
    }
    assert [route for route in re.findall(r"^\| `([A-Z]+ /[^`]+)`", text, re.M) if route not in known] == []
