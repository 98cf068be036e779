"""A checkout of another commit with a separate virtual environment, in `build/base/`.

The checkout is a git worktree, and its own Makefile makes the environment. The last one stays for the next run; a run with
another commit removes it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_MAKE_VARIABLES = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTHONPATH")
"""Of the `make bench` that started us; the other checkout's make must not inherit its arguments."""


class CheckoutFailed(Exception):
    """The commit has no usable checkout. The message is for a person."""


def prepare_checkout(root: Path, commit: str) -> str:
    """Check the commit out and install it, unless an earlier run did. Returns its Python. Raises CheckoutFailed."""
    checkout = root / "build" / "base" / _resolve_commit(root, commit)[:12]
    for other in checkout.parent.glob("*"):
        if other != checkout:
            _remove_checkout(root, other)
    if not checkout.exists():
        # With --force, a registered worktree whose directory `make clean` has removed is no obstacle.
        _run(root, "git", "worktree", "add", "--force", "--quiet", "--detach", str(checkout), checkout.name)
    return _install(checkout)


def _resolve_commit(root: Path, commit: str) -> str:
    argv = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"]
    done = subprocess.run(argv, check=False, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise CheckoutFailed(f"There is no commit {commit} in this repository.")
    return done.stdout.strip()


def _install(checkout: Path) -> str:
    """Make the environment with the interpreter of this one, so that only Handrail differs."""
    python = checkout / ".venv" / "bin" / "python"
    interpreter = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    _run(checkout, "make", "--no-print-directory", ".venv/run", f"PYTHON={interpreter}")
    package = _run(checkout, str(python), "-c", "import handrail; print(handrail.__file__)").strip()
    if not Path(package).is_relative_to(checkout):
        raise CheckoutFailed(f"The environment in {checkout} imports another Handrail: {package}")
    return str(python)


def _remove_checkout(root: Path, checkout: Path) -> None:
    argv = ["git", "worktree", "remove", "--force", str(checkout)]
    subprocess.run(argv, check=False, cwd=root, capture_output=True)
    shutil.rmtree(checkout, ignore_errors=True)


def _run(cwd: Path, *argv: str) -> str:
    """Run a program and return its output; its stderr goes to ours. Raises CheckoutFailed."""
    print(f"bench: {' '.join(argv)}", file=sys.stderr, flush=True)
    env = {name: value for name, value in os.environ.items() if name not in _MAKE_VARIABLES}
    done = subprocess.run(argv, check=False, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sentence = f"`{' '.join(argv)}` failed with status {done.returncode}; its messages are above."
        raise CheckoutFailed(sentence)
    return done.stdout
