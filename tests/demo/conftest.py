"""The homes of the command line's tests."""

from tests.cli.conftest import alone

__all__ = ["alone"]
