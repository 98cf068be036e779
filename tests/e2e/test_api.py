"""The contract of /api: whatever a person's program sends, it is never the daemon that breaks."""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from tests.support.daemon_home import BOUND, Home
from tests.support.person_client import Person

EXAMPLES = 8
"""Random requests for each route and mode: enough to meet each kind of value, few enough to be quick."""
HASTY = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
LEFT_OUT = {"/api/down"}
"""It would end the daemon under the test."""


def operations(home: Home, person: Person) -> list[Any]:
    """Every route, from the daemon's own description."""
    described = httpx.get(f"{home.url}/api/openapi.json", headers=person.headers, timeout=BOUND).json()
    schema: Any = schemathesis.openapi.from_dict(described)
    schema.config.update(base_url=home.url)
    found = [result.ok() for result in schema.get_all_operations()]
    return [operation for operation in found if operation.path not in LEFT_OUT]


def statuses(operation: Any, mode: GenerationMode, person: Person) -> set[int]:
    """How random requests to one route are answered; one that breaks it fails the test."""
    met: set[int] = set()

    @HASTY
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        response = case.call(headers=person.headers, timeout=BOUND)
        met.add(response.status_code)
        assert response.status_code < 500, f"{case.as_curl_command()}: {response.text}"
        assert response.status_code < 400 or response.json()["detail"], "a refusal says why"

    send()
    return met


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_route_breaks_on_random_requests(
    shared_home: Home, shared_person: Person, mode: GenerationMode
) -> None:
    pid = shared_home.pid
    routes = operations(shared_home, shared_person)
    tried = [operation for operation in routes if mode.is_positive or takes_something(operation)]

    met = {f"{one.method} {one.path}": statuses(one, mode, shared_person) for one in tried}

    assert len(met) > 5
    assert shared_home.pid == pid
    assert "Traceback" not in shared_home.said()
    wanted = {200, 404} if mode.is_positive else {422}
    assert set[int]().union(*met.values()) >= wanted, met


def takes_something(operation: Any) -> bool:
    """Only then can something wrong be sent to it; any text may name a call that does not exist."""
    return bool(list(operation.query) or operation.body)
