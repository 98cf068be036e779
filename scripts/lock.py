"""Writes `constraints.txt` and the lock files of `ui`, `editors/vscode`, `tests/editors`, `tests/real_agents`, `tests/real_clients`, `tests/real_servers` and `bench/relays` anew from what the registries hold today.

Owns how the pins are made: a real install into an empty environment, its versions written down without
any address. Does not know which bounds they must meet: those are pyproject.toml's and package.json's.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {
    "agents": "tests/real_agents",
    "clients": "tests/real_clients",
    "others": "tests/real_clients/others",
    "servers": "tests/real_servers",
    "relays": "bench/relays",
}
"""The third-party programs that tests and the bench start: a set of tests/real_agents/install.py, and its folder."""
UNPINNED = ("handrail", "setuptools", "wheel")  # ours, and what a new environment happens to bring


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        python = new_environment(Path(folder) / "venv")
        frozen = run(python, "-m", "pip", "--disable-pip-version-check", "freeze", "--all")
    pins = [
        line
        for line in frozen.splitlines()
        if line.partition("==")[0] not in UNPINNED and line[0] not in "#-"
    ]
    (ROOT / "constraints.txt").write_text("# Written by `make lock`.\n" + "\n".join(pins) + "\n")
    lock_packages("ui", "hatch_build.py")
    lock_packages("editors/vscode", "hatch_build.py", "extension")
    lock_packages("tests/editors", "-m", "tests.editors.install", "newest", "npm")
    lock_packages("tests/editors/oldest", "-m", "tests.editors.install", "oldest", "npm")
    for name, folder in PROGRAMS.items():
        lock_packages(folder, "-m", "tests.real_agents.install", name, "npm")


def new_environment(folder: Path) -> Path:
    """The python of an environment that holds the newest of everything this project asks for."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = (python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
    run(*install, "--upgrade", "pip")
    run(*install, "--group", "dev")
    run(*install, "--no-build-isolation", "--editable", str(ROOT))
    return python


def lock_packages(folder: str, *npm: str) -> None:
    """The lock file of npm's packages in a folder, without the addresses that npm copies from them."""
    lock = ROOT / folder / "package-lock.json"
    run(sys.executable, *npm, "install", "--package-lock-only")
    tree = json.loads(lock.read_text())
    for package in tree["packages"].values():
        package.pop("funding", None)
        package.pop("resolved", None)
    lock.write_text(json.dumps(tree, indent=2) + "\n")


def run(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
