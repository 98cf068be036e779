"""How a question looks to people's programs: what it is about, and what a person can do about it."""

from pathlib import Path

import pytest
from tests.gate.test_gate_ask import Wish, asker
from tests.support.gate_world import gate_world
from tests.support.sample_tools import Write

from handrail.gate.tool import NO_EDITS
from handrail.server.api.approvals import ApprovalContext, approval_view
from handrail.store.records import open_records

pytestmark = pytest.mark.anyio


async def test_a_person_learns_whether_they_may_edit_it_and_why_not(tmp_path: Path) -> None:
    async with (
        gate_world(tmp_path, Wish(), Write()) as here,
        open_records(tmp_path / "handrail.db") as records,
    ):
        told: dict[str, tuple[bool, str]] = {}
        for client in (asker(here), here.client("write")):
            question = await here.question(await client.call())
            record = await records.approvals.get(question.id)
            assert record is not None
            view = approval_view(record, here.gate, ApprovalContext(trusted=True))
            told[view.tool] = (view.can_edit, view.why_not_edit)
        assert told == {"wish": (False, NO_EDITS), "write": (True, "")}
