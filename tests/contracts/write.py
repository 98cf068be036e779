"""Rewrites the stored contracts: `make contracts`, or `python -m tests.contracts.write`."""

from pathlib import Path

from tests.contracts.collect import CONTRACTS

FILES = Path(__file__).parent / "files"


def main() -> None:
    for name, collect in CONTRACTS.items():
        (FILES / name).write_text(collect())


if __name__ == "__main__":
    main()
