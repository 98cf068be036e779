"""What a device may not allow when high risk is left to the desk."""

from pathlib import Path

import pytest
from tests.support.gate_world import gate_world
from tests.support.sample_tools import Write

from handrail.errors import Conflict
from handrail.gate import person_actions
from handrail.server.api._device_limits import check_answer
from handrail.server.api.approval_models import AnswerBody
from handrail.store.values import Json

pytestmark = pytest.mark.anyio


async def test_an_edit_is_judged_as_it_is_allowed(tmp_path: Path) -> None:
    """Otherwise a file that changes in between could be judged as one thing and be allowed as another."""
    async with gate_world(tmp_path, Write()) as here:
        call = await here.client("write", {"word": "a"}).call()
        approval = await here.question(call)
        seen: Json = {"word": "b"}
        digest = (await person_actions.edit(here.gate, call, seen)).digest
        await check_answer(here.gate, call, approval, AnswerBody(answer="allow", digest=digest, input=seen))
        other = AnswerBody(answer="allow", digest=approval.digest, input=seen)
        with pytest.raises(Conflict, match="out of date"):
            await check_answer(here.gate, call, approval, other)
