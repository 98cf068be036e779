"""The page's files: served for every address of the page, and honest when they were not built."""

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from handrail.server.app import page_routes


def client(static: Path) -> httpx.AsyncClient:
    app = Starlette(routes=page_routes(static))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


@pytest.fixture
def static(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Handrail</title>")
    (tmp_path / "assets" / "app-1.js").write_text("start()")
    (tmp_path / "secret.txt").write_text("not for anybody")
    return tmp_path


@pytest.mark.parametrize(
    "path", ["/", "/calls", "/terminals", "/rules", "/c/c123", "/a/a123", "/x/x123", "/gallery"]
)
async def test_every_address_of_the_page_serves_it(static: Path, path: str) -> None:
    async with client(static) as http:
        answer = await http.get(path)

    assert answer.status_code == 200
    assert "Handrail" in answer.text
    assert answer.headers["cache-control"] == "no-cache"


async def test_its_parts_are_served_and_nothing_beside_them(static: Path) -> None:
    async with client(static) as http:
        part = await http.get("/assets/app-1.js")
        beside = [
            await http.get(path)
            for path in ("/secret.txt", "/assets/../secret.txt", "/assets/%2e%2e/secret.txt")
        ]

    assert part.text == "start()"
    assert [answer.status_code for answer in beside] == [404, 404, 404]


async def test_a_page_that_was_not_built_says_how(tmp_path: Path) -> None:
    async with client(tmp_path) as http:
        answer = await http.get("/")

    assert answer.status_code == 503
    assert "make ui" in answer.text
