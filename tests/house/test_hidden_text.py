"""The page's table of hidden characters is the one generated from the package."""

from tests.house.source import ROOT

from handrail.hidden_text import typescript


def test_the_committed_table_of_the_page_is_the_generated_one() -> None:
    committed = (ROOT / "ui/src/hidden_text.ts").read_text()
    assert committed == typescript(), "Run: .venv/bin/python -m handrail.hidden_text > ui/src/hidden_text.ts"
