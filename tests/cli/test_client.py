"""The way to the daemon, and what is said when it is not there."""

from dataclasses import replace

import pytest
from tests.support.cli_home import Home

from handrail.cli.client import Link, reach
from handrail.cli.failure import Failure


def test_a_daemon_that_went_away_is_told_as_such() -> None:
    gone = Link(url="http://127.0.0.1:1", pid=1, version="0", bearer="none")
    with pytest.raises(Failure) as failure:
        gone.get("state")
    assert failure.value.code == 3
    assert "`handrail up`" in str(failure.value)


@pytest.mark.e2e
def test_a_daemon_that_took_the_place_of_ours_is_told_as_a_daemon_that_is_gone(handrail: Home) -> None:
    with reach("read") as link, pytest.raises(Failure, match="replaced") as failure:
        replace(link, bearer="of another time").get("state")
    assert failure.value.code == 3
