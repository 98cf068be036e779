"""The way to the daemon, and what is said when it is not there."""

import pytest

from handrail.cli.failure import Failure
from handrail.cli.link import Link


def test_a_daemon_that_went_away_is_told_as_such() -> None:
    gone = Link(url="http://127.0.0.1:1", pid=1, version="0", bearer="none")
    with pytest.raises(Failure) as failure:
        gone.get("state")
    assert failure.value.code == 3
    assert "`handrail up`" in str(failure.value)
