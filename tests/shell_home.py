"""A home for the shells of a test: empty, so that none of the machine's start-up files is read.

Knows what shells do by themselves when they find such a home; nothing of what is tested with them.
"""

from pathlib import Path


def shell_home(path: Path) -> Path:
    """Makes it, and what keeps fish from reading every manual of the machine beside the test."""
    (path / ".local" / "share" / "fish" / "generated_completions").mkdir(parents=True, exist_ok=True)
    return path
