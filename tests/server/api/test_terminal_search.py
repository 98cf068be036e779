"""Terminals are found by name, command and output, in the search language; keys they do not have are refused."""

import pytest
from tests.support.daemon_home import eventually, running_daemon
from tests.support.person_client import Person, person_of

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def test_terminals_are_searched_like_calls() -> None:
    with running_daemon() as home:
        person = person_of(home)
        red = "printf 'some \\033[31mneedle\\033[0m-work 73\\n'; exit 3"
        for name, line in (("sewing", red), ("plain", "echo hay")):
            await person.post("terminals", {"name": name, "command": ["/bin/sh", "-c", line]})

        async def have_ended() -> bool:
            return not any(each["running"] for each in await person.get("terminals"))

        await eventually(have_ended)
        assert await found(person, "needle-work") == ["sewing"]
        assert await found(person, "NEEDLE exit:3 status:failed agent:you") == ["sewing"]
        assert await found(person, "-needle") == ["plain"]
        assert await found(person, "in:title needle") == []
        assert await found(person, "in:output sewing") == []
        assert await found(person, "sewing") == ["sewing"]
        assert await found(person, '"echo hay" -status:failed') == ["plain"]
        for query, words in (("risk:high", "about calls"), ("colour:red", "There is no key `colour`")):
            refused = await person.ask("GET", "terminals", q=query)
            assert (refused.status_code, words in refused.text) == (422, True)


async def found(person: Person, query: str) -> list[str]:
    return [each["name"] for each in await person.get("terminals", q=query)]
