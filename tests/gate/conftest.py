"""Every test of the gate holds on both event loops: cancellation differs between them in what it may catch."""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param
