"""Without the programs there is nothing to try: `make agents` installs those of `make test`."""

from collections.abc import Iterator

import pytest
from tests.real_clients.client_catalog import ALL, ALWAYS, Client
from tests.real_clients.guarded_client import GuardedClient, guarded_client

PARAMETERS = [
    pytest.param(client, id=client.name, marks=() if client in ALWAYS else pytest.mark.all_clients)
    for client in ALL
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=PARAMETERS)
def client(request: pytest.FixtureRequest) -> Client:
    return request.param


@pytest.fixture(scope="module")
def guarded(client: Client) -> Iterator[GuardedClient]:
    """A connected client. Its tests share it, since what takes long is starting things."""
    with guarded_client(client) as guarded:
        connected = guarded.handrail("connect", client.name, "--yes")
        assert connected.returncode == 0, connected.stdout + connected.stderr
        yield guarded
        assert guarded.model.refused == [], "what real clients send is what real providers take"
