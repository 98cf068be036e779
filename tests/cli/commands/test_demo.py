"""`handrail demo`, for whoever has seen enough."""

import signal
import subprocess

import pytest
from tests.support.cli_home import BOUND, Home

pytestmark = pytest.mark.e2e


def test_ctrl_c_ends_the_demo_and_what_it_asked(alone: Home) -> None:
    with alone.start("demo", "--no-open", stdout=subprocess.PIPE) as demo:
        assert demo.stdout is not None
        alone.comes_up()
        alone.asked(3, anywhere=True)
        demo.send_signal(signal.SIGINT)
        assert "The agent leaves." in demo.stdout.read()
        assert demo.wait(BOUND) == 0
    assert alone.ok("approvals", "--json").json == []
