"""The newest versions of packages, from npm and pip as they are installed, within a bound and without a network."""

import sys
import time
from pathlib import Path

import pytest

from handrail.cli.package_versions import find_newest_versions

PYTHON = sys.executable
NPM = """#!/bin/sh
case "$2" in
  one) echo 1.2.3 ;;
  @scope/two) echo 2.0.0-beta.1 ;;
  slow) exec sleep 600 ;;
  *) echo "npm error 404" >&2; exit 1 ;;
esac
"""
PIP = """#!/bin/sh
[ "$2" = -c ] && exit 0
[ "$6" = hermes-agent ] && echo "hermes-agent (0.19.0)" && echo "Available versions: 0.19.0, 0.18.0" && exit 0
exit 1
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, script in (("npm", NPM), ("python3", PIP)):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python3"))
    return tmp_path


def test_the_registries_are_asked_through_the_package_managers(tools: Path) -> None:
    asked = {"a": ("npm", "one"), "b": ("npm", "@scope/two"), "c": ("uv", "hermes-agent[acp]")}
    found = find_newest_versions(asked)
    assert found.versions == {"a": "1.2.3", "b": "2.0.0-beta.1", "c": "0.19.0"}
    assert found.problems == []


PLANTED = "import pathlib; pathlib.Path({!r}, __name__).touch()"


def test_nothing_of_the_working_folder_is_loaded(
    tools: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that may write there would get code into a program that carries no mark."""
    project, loaded = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("loaded")
    for name in ("contextlib", "pip"):
        (project / f"{name}.py").write_text(PLANTED.format(str(loaded)))
    (project / ".npmrc").write_text("registry=http://127.0.0.1:9/${ANTHROPIC_API_KEY}\n")
    (tools / "npm").write_text("#!/bin/sh\nif [ -e .npmrc ]; then exit 1; fi\necho 1.2.3\n")
    monkeypatch.chdir(project)
    monkeypatch.setattr("sys.executable", PYTHON)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    assert find_newest_versions({"a": ("npm", "one"), "b": ("uv", "two")}).versions == {"a": "1.2.3"}
    assert [*loaded.iterdir()] == []


def test_a_package_that_is_not_found_is_named_and_the_others_are_listed(tools: Path) -> None:
    found = find_newest_versions({"a": ("npm", "one"), "x": ("npm", "nothing")})
    assert (found.versions, found.problems) == ({"a": "1.2.3"}, ["No version was found for x."])


def test_a_registry_that_does_not_answer_costs_no_more_than_the_bound(tools: Path) -> None:
    began = time.monotonic()
    found = find_newest_versions({str(n): ("npm", "slow") for n in range(9)}, seconds=0.5)
    assert found.versions == {}
    assert time.monotonic() - began < 30


def test_a_missing_package_manager_is_said(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tools / "npm").unlink()
    monkeypatch.setenv("PATH", str(tools))
    found = find_newest_versions({"a": ("npm", "one")})
    assert found.problems == ["npm is not installed, so agents from npm were not looked up."]
