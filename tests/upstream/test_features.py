"""Which server owns a resource."""

import time

import pytest

from handrail.upstream.features import matches_template


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("db://{table}/{row}", "db://users/7", True),
        ("db://{table}/{row}", "db://users", False),
        ("db://{table}/{row}", "db://users/a b", False),
        ("db://{table}/end", "db://end", False),
        ("db://{a}-{b}.txt", "db://1-2-3.txt", True),
        ("file:///{+path}", "file:///a/b.txt", True),
        ("a.b://{x}", "axb://1", False),
        ("plain://x", "plain://x", True),
        ("plain://x", "plain://xy", False),
    ],
)
def test_a_template_matches_the_uris_that_it_can_produce(template: str, uri: str, fits: bool) -> None:
    assert matches_template(uri, template) == fits


def test_a_hostile_template_takes_no_time() -> None:
    """Its server chooses it; the daemon's event loop compares it with the URIs of other servers."""
    began = time.monotonic()
    assert not matches_template("x" * 2000, "x" + "{a}x" * 500 + "!")
    assert not matches_template("x" * 2000, "{a}" * 2000 + "!")
    assert time.monotonic() - began < 1
