"""Every test of the gate holds on both event loops: cancellation differs between them in what it may catch."""

import pytest
from hypothesis import settings

# How long one example takes depends on what else the machine does; the test as a whole has its bound.
settings.register_profile("handrail", deadline=None)
settings.load_profile("handrail")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param
