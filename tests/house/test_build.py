"""The page is built when its sources changed and only then, by the Node that comes in a wheel."""

import json
import shutil
from pathlib import Path

import pytest
from hatch_build import STATIC, build_page

BUILD = """
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
const out = process.argv[process.argv.indexOf("--outDir") + 1];
mkdirSync(out, { recursive: true });
writeFileSync(`${out}/index.html`, readFileSync("src/page.html"));
appendFileSync("../builds", process.version + "\\n");
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A project whose page is one file, copied by a build script that counts how often it ran."""
    ui = tmp_path / "ui"
    (ui / "src").mkdir(parents=True)
    (ui / "src" / "page.html").write_text("first")
    (ui / "build.mjs").write_text(BUILD)
    scripts = {"build": "node build.mjs"}
    (ui / "package.json").write_text(json.dumps({"name": "page", "version": "0.0.1", "scripts": scripts}))
    (ui / "package-lock.json").write_text(json.dumps({"name": "page", "lockfileVersion": 3, "packages": {}}))
    (ui / ".npmrc").write_text("offline=true\nupdate-notifier=false\n")
    (ui / "node_modules").mkdir()
    return tmp_path


def builds(checkout: Path) -> list[str]:
    return (checkout / "builds").read_text().splitlines()


def test_a_page_is_built_once_and_again_when_a_source_changed(checkout: Path) -> None:
    page = checkout / STATIC / "index.html"
    build_page(checkout)
    build_page(checkout)
    assert (page.read_text(), len(builds(checkout))) == ("first", 1)

    (checkout / "ui" / "src" / "page.html").write_text("second")
    build_page(checkout)
    assert (page.read_text(), len(builds(checkout))) == ("second", 2)


def test_a_built_page_carried_elsewhere_with_its_sources_is_not_built_again(
    checkout: Path, home: Path
) -> None:
    build_page(checkout)
    moved = Path(shutil.move(checkout, home / "unpacked"))
    (moved / "ui" / "build.mjs").touch()
    build_page(moved)
    assert len(builds(moved)) == 1


def test_a_page_whose_files_were_removed_is_built_again(checkout: Path) -> None:
    build_page(checkout)
    (checkout / STATIC / "index.html").unlink()
    build_page(checkout)
    assert len(builds(checkout)) == 2


def test_the_build_uses_the_node_of_the_wheel_whatever_the_machine_has(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    build_page(checkout)
    assert [version.split(".")[0] for version in builds(checkout)] == ["v24"]


def test_a_page_that_is_served_stays_whole_until_the_new_one_is(checkout: Path) -> None:
    build_page(checkout)
    (checkout / "ui" / "src" / "page.html").write_text("second")
    (checkout / "ui" / "build.mjs").write_text("process.exit(3)")
    with pytest.raises(SystemExit):
        build_page(checkout)
    assert (checkout / STATIC / "index.html").read_text() == "first"

    (checkout / STATIC / "old.js").touch()
    (checkout / "ui" / "build.mjs").write_text(BUILD)
    build_page(checkout)
    assert sorted(path.name for path in (checkout / STATIC).iterdir()) == [".sources", "index.html"]


def test_a_build_that_fails_says_which_command_failed_and_leaves_no_stamp(checkout: Path) -> None:
    (checkout / "ui" / "build.mjs").write_text("process.exit(3)")
    with pytest.raises(SystemExit, match=r"npm run build .* failed"):
        build_page(checkout)
    assert not (checkout / STATIC / ".sources").exists()
