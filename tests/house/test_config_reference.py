"""docs/configuration.md describes every setting, and equals the output of its generator."""

import subprocess
import sys

import pytest
from scripts.config_reference import CHAPTERS, PAGE, Chapter, check_example, settings_of
from tests.house.source import ROOT

from handrail.config import Config

EACH_CHAPTER = pytest.mark.parametrize("chapter", CHAPTERS, ids=[chapter.title for chapter in CHAPTERS])
WITHOUT_EXAMPLE = {"rules"}  # shown as [[rules]]


def test_the_committed_page_is_what_make_docs_writes() -> None:
    # In a process of its own, as `make docs` does it: Python merges literal types that differ in order alone, so the order
    # of a setting's values depends on the modules that were imported before.
    code = "from scripts.config_reference import build_page; print(build_page(), end='')"
    built = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert PAGE.read_text() == built.stdout, "docs/configuration.md is out of date. Run: make docs"


@EACH_CHAPTER
def test_every_setting_has_a_description(chapter: Chapter) -> None:
    assert [name for name, _, description in settings_of(chapter.model) if not description] == []


@EACH_CHAPTER
def test_every_example_loads_and_sets_every_key(chapter: Chapter) -> None:
    check_example(chapter)
    missing = [name for name, _, _ in settings_of(chapter.model) if f"{name} = " not in chapter.example]
    assert set(missing) <= WITHOUT_EXAMPLE


def test_every_section_of_the_file_is_on_the_page() -> None:
    models = {chapter.model for chapter in CHAPTERS}
    sections = {field.annotation for field in Config.model_fields.values()}
    assert {section for section in sections if isinstance(section, type)} - {bool} <= models
