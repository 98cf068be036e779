"""Which modules may start a process. The daemon starts all of its own through the launcher."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.source import SRC, Module, modules, nodes

MODULES = {
    "subprocess",
    "multiprocessing",
    "pty",
    "webbrowser",
    "_posixsubprocess",
    "concurrent.futures.process",
}
"""Modules that start processes."""
STARTERS = {
    *("fork", "forkpty", "vfork", "posix_spawn", "posix_spawnp", "system", "popen", "startfile"),
    *(f"exec{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *(f"spawn{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *("open_process", "run_process", "to_process", "create_subprocess_exec", "create_subprocess_shell"),
    *("subprocess_exec", "subprocess_shell", "stdio_client", "spawn_agent_process", "spawn_stdio_transport"),
    *("find_library", "ProcessPoolExecutor"),
}
"""Names of functions that start a process, in the standard library, anyio and the protocols' packages."""
HARMLESS = {"platform.system", "importlib.system"}

ALLOWED = {
    "launcher.child": "starts the launcher process, marked, and the keeper",
    "launcher.__main__": "the launcher process: starts what the daemon orders",
    "keeper.__main__": "the keeper starts a daemon, which must not be marked",
    "keeper._leader": "a warden starts the program of a terminal, marked",
    "keeper.pty": "the keeper forks wardens",
    "keeper.system": "ps on macOS",
    "door.start_daemon": "a door or the command line starts the daemon",
    "door.shell": "without Handrail, `handrail shell` becomes the person's plain shell",
    "cli.commands.agents": "the person's command becomes our own agent",
    "cli.web_browser": "the person's command opens the person's browser",
    "cli.package_versions": "the person's command asks the person's package managers for versions",
    "cli.interactive.question": "the person's command opens the person's editor",
    "clients.client_program": "the person's command runs the client's own program",
    "clients.vscode_extension": "the person's command installs the extension by the command of the person's editor",
    "clients.proof": "the person's command runs the person's client in a scratch home",
    "demo.mcp_client": "a scripted agent starts its door",
    "own_agent.tools.sdk_session": "our own agent, which the keeper started marked, starts the MCP servers of its host",
    "own_agent.tools.own_server_session": "our own agent, marked like its host, starts the door to our own server",
}
"""Modules that start processes, with the reason."""


def starts(module: Module) -> Iterator[str]:
    """The names in a module that start a process."""
    for node in nodes(module.path):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in MODULES)
            case ast.ImportFrom(module=str(name), names=names):
                if name in MODULES:
                    yield name
                if not name.startswith("handrail"):
                    yield from (alias.name for alias in names if alias.name in STARTERS | MODULES)
            case ast.Attribute(value=ast.Name(id=base), attr=name) if name in STARTERS:
                if f"{base}.{name}" not in HARMLESS:
                    yield f"{base}.{name}"
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__"), args=[ast.Constant(value=str(name))]
            ):
                yield from {name} & MODULES
            case _:
                pass


def starters(src: Path) -> dict[str, list[str]]:
    found = {module.name.removeprefix("handrail."): sorted({*starts(module)}) for module in modules(src)}
    return {name: names for name, names in found.items() if names}


def test_only_the_launcher_keeper_doors_and_a_persons_commands_start_processes() -> None:
    assert {name: names for name, names in starters(SRC).items() if name not in ALLOWED} == {}


def test_every_exception_is_still_needed() -> None:
    assert ALLOWED.keys() - starters(SRC).keys() == set()


def unisolated(module: Module) -> Iterator[int]:
    """The lines of a module that start this Python with the working folder on its path: see `paths.own_python`."""
    for node in nodes(module.path):
        match node:
            case ast.List(elts=[first, second, *_]) | ast.Tuple(elts=[first, second, *_]):
                is_python = ast.unparse(first) in ("sys.executable", "python")
                if is_python and isinstance(second, ast.Constant) and second.value not in ("-I", "-P"):
                    yield node.lineno
            case _:
                pass


def test_no_module_of_the_working_folder_is_loaded_by_a_python_that_we_start() -> None:
    found = {module.name: [*unisolated(module)] for module in modules(SRC)}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess",
        "def f():\n    from subprocess import Popen",
        "import os\nos.posix_spawn('/bin/ls', [], {})",
        "from os import execv",
        "import anyio\nanyio.open_process(['ls'])",
        "from anyio import run_process",
        "import asyncio\nasyncio.create_subprocess_exec('ls')",
        "import webbrowser",
        "from ctypes.util import find_library",
        "import importlib\nfrom importlib import import_module\nimport_module('subprocess')",
    ],
)
def test_a_start_is_found_however_it_is_written(tmp_path: Path, line: str) -> None:
    (tmp_path / "handrail" / "gate").mkdir(parents=True)
    (tmp_path / "handrail" / "gate" / "a.py").write_text(line)
    assert list(starters(tmp_path)) == ["gate.a"]
