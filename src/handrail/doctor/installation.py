"""Checks of what another process of the user could change or trace: the installation, PATH, the kernel's ptrace scope.

`harden_commands` lists the commands for an installation that belongs to root. Nothing is changed here.
"""

import os
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

import handrail
from handrail import __version__
from handrail.doctor.checks import Finding
from handrail.launcher.trusted_programs import find_program, find_untrusted

PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
HARDEN = "handrail doctor --harden   (prints the commands)"
TARGET = "/opt/handrail"
"""Where the commands install Handrail."""


def check_installation() -> Finding:
    """Whether this user can change Handrail's own code."""
    if os.getuid() == 0:
        says = "Handrail runs as root, so an approved command can change everything, Handrail's own code included."
        return Finding(name="install", level="warn", says=says, fix="Run it as an ordinary user.")
    place = next(_find_writable(), None)
    if place is None:
        says = f"Only root can change the code in {Path(handrail.__file__).parent}."
        return Finding(name="install", level="ok", says=says)
    says = f"Your user can write {place}, so an approved command can change Handrail's own code."
    return Finding(name="install", level="warn", says=says, fix=HARDEN)


def check_search_path(environ: Mapping[str, str]) -> Finding:
    """Folders of PATH into which an approved command can put a program."""
    if os.getuid() == 0:
        return Finding(name="path", level="ok", says="Not checked: root can write every folder of PATH.")
    listed = [Path(folder) for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    writable = [str(folder) for folder in dict.fromkeys(listed) if _can_write(folder)]
    if not writable:
        return Finding(name="path", level="ok", says="Your user can write no folder of PATH.")
    says = (
        f"Your user can write {', '.join(writable)}, on PATH. Handrail takes no program from there, but an approved "
        "command can put one there that a later command runs."
    )
    fix = "Put folders of the system first in PATH, before those."
    return Finding(name="path", level="warn", says=says, fix=fix)


def check_ptrace(scope: Path = PTRACE_SCOPE) -> Iterator[Finding]:
    """Whether the kernel lets a process trace another one of the same user. Linux only."""
    if sys.platform != "linux":
        return
    try:
        value = int(scope.read_text())
    except (OSError, ValueError):
        says = "The kernel lets every process of yours trace any other: it has no Yama (kernel.yama.ptrace_scope)."
        yield Finding(name="ptrace", level="warn", says=says, fix="Boot a kernel with Yama (`lsm=…,yama`).")
        return
    if value == 0:
        says = "The kernel lets every process of yours trace any other (kernel.yama.ptrace_scope = 0)."
        yield Finding(name="ptrace", level="warn", says=says, fix="sudo sysctl kernel.yama.ptrace_scope=1")
        return
    says = f"A process can trace only what it started (kernel.yama.ptrace_scope = {value})."
    yield Finding(name="ptrace", level="ok", says=says)


def harden_commands() -> str:
    """The commands that install Handrail for root, so that no process of this user can change it."""
    python = find_program("python3") or "/usr/bin/python3"
    return f"""\
# Installs Handrail {__version__} in {TARGET}, owned by root, so that no approved command can change its code.
# {python} must be Python 3.11 or newer, and belong to root.
# -I: without it, Python would import modules of the folder in which you run this, as root.
sudo {python} -I -m venv {TARGET}
sudo {TARGET}/bin/python -I -m pip install handrail=={__version__}
sudo ln -sfn {TARGET}/bin/handrail /usr/local/bin/handrail
# Then stop the old one, remove it (one of these), and start the new one:
handrail down
pipx uninstall handrail        # or: uv tool uninstall handrail
/usr/local/bin/handrail up
# Clients that name another path must launch /usr/local/bin/handrail mcp instead.
# Let processes trace only what they started, also after a reboot (in a kernel with Yama):
echo kernel.yama.ptrace_scope=1 | sudo tee /etc/sysctl.d/60-ptrace.conf
sudo sysctl --system
"""


def _find_writable() -> Iterator[Path]:
    """Places of the installation that someone other than root can change: the interpreter, its library, all packages."""
    paths = sysconfig.get_paths()
    package = Path(handrail.__file__).parent
    packages = [Path(paths[name]) for name in ("purelib", "platlib")]
    roots = [Path(sys.executable), Path(paths["stdlib"]), Path(paths["scripts"]), *packages, package]
    inside = (entry for folder in packages for entry in folder.iterdir())
    for path in (*roots, *inside, *package.rglob("*.py"), *_find_import_folders()):
        place = find_untrusted(path)
        if place is not None:
            yield place


def _find_import_folders() -> Iterator[Path]:
    """The folders from which a `handrail` command imports modules, or would: PYTHONPATH, the user's site-packages."""
    named = [Path(folder) for folder in sys.path[1:] if folder]
    own = [Path(site.getusersitepackages())] if site.ENABLE_USER_SITE else []
    for folder in (*named, *own):  # a missing one can be created by who may write the folder above
        yield next(place for place in (folder, *folder.parents) if place.exists())


def _can_write(folder: Path) -> bool:
    """Whether this user can put a program into a folder, or replace the folder."""
    try:
        return folder.is_dir() and find_untrusted(folder) is not None
    except OSError:  # below a folder that this user may not search
        return False
