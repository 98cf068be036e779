"""Which server owns a resource."""

import pytest

from handrail.upstream.features import template_pattern


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("db://{table}/{row}", "db://users/7", True),
        ("db://{table}/{row}", "db://users", False),
        ("file:///{+path}", "file:///a/b.txt", True),
        ("a.b://{x}", "axb://1", False),
    ],
)
def test_a_template_matches_the_uris_that_it_can_produce(template: str, uri: str, fits: bool) -> None:
    assert (template_pattern(template).fullmatch(uri) is not None) == fits
