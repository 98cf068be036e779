"""The public contracts are as stored: what clients, scripts, other versions and people's files rely on."""

from difflib import unified_diff

import pytest
from scripts.language_model_tools import MANIFEST, build_manifest
from tests.contracts.collect import CONTRACTS
from tests.contracts.write import FILES

ADVICE = (
    "This is a public contract. If the change is meant, run `make contracts`, commit the file, "
    "and name the change in CHANGELOG.md."
)
LONGEST = 200
"""Lines of a difference that are shown."""


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_is_as_stored(name: str) -> None:
    stored, found = (FILES / name).read_text(), CONTRACTS[name]()
    if found != stored:
        lines = unified_diff(
            stored.splitlines(), found.splitlines(), f"files/{name}", "the code", lineterm=""
        )
        shown = "\n".join(list(lines)[:LONGEST])
        pytest.fail(f"{name} differs from the code. {ADVICE}\n{shown}", pytrace=False)


def test_the_extension_declares_the_tools_as_they_are() -> None:
    assert MANIFEST.read_text() == build_manifest(), "run `make contracts`"


def test_every_stored_file_is_compared() -> None:
    assert {path.name for path in FILES.iterdir()} == CONTRACTS.keys()
