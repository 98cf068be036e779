"""What a call would do now: worked out without any effect, as often as one likes."""

from pathlib import Path

import pytest
from tests.support.actors import ANN
from tests.support.gate_world import ONE, gate_world, rule
from tests.support.sample_tools import Sheet, Write

from handrail.gate.tool import Refusal
from handrail.store.values import Comment, Json

pytestmark = pytest.mark.anyio


async def test_working_it_out_twice_gives_the_same_and_does_nothing(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        one, two = [await here.gate.drafts.draft("sheet", {"word": "new"}, ONE) for _ in range(2)]
        assert (one.digest, one.planned.footing) == (two.digest, two.planned.footing)
        assert (tool.holds, tool.runs) == ("old", [])


async def test_the_digest_follows_input_content_plan_and_strict_rules(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        drafts = here.gate.drafts
        first = await drafts.draft("sheet", {"word": "new"}, ONE)
        digests = [
            first.digest,
            (await drafts.draft("sheet", {"word": "new", "count": 2}, ONE)).digest,
            (await drafts.draft("sheet", {"word": "new"}, ONE, "newer")).digest,
        ]
        tool.holds = "other"
        digests.append((await drafts.draft("sheet", {"word": "new"}, ONE)).digest)
        await here.rules.add(rule(tool="sheet"), ANN)
        assert drafts.decide_again(first, ONE).digest == first.digest, (
            "what only allows more changes no answer"
        )
        await here.rules.add(rule("ask", "r2", tool="sheet"), ANN)
        digests.append(drafts.decide_again(first, ONE).digest)
        assert len(set(digests)) == len(digests)


async def test_a_review_has_the_footing_of_what_it_reviews(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Sheet()) as here:
        plain = await here.gate.drafts.draft("sheet", {"word": "new"}, ONE)
        reviewed = await here.gate.drafts.draft("sheet", {"word": "new"}, ONE, "newer")
        assert reviewed.planned.footing == plain.planned.footing
        assert reviewed.planned.proposal is not None
        assert (reviewed.planned.proposal.before, reviewed.planned.proposal.after) == ("old", "newer")


async def test_comments_change_no_digest(tmp_path: Path) -> None:
    async with gate_world(tmp_path, Sheet()) as here:
        draft = await here.gate.drafts.draft("sheet", {"word": "new"}, ONE, "newer")
        plan = await draft.planned.commented((Comment(line=1, text="hm"),))
        assert plan != draft.plan
        assert plan.bound == draft.plan.bound
        assert await draft.planned.commented(()) is draft.plan


@pytest.mark.parametrize("input", [{"word": "old"}, {"word": []}, {"word": "x" * (17 << 20)}])
async def test_what_cannot_be_is_refused_with_a_sentence(tmp_path: Path, input: Json) -> None:
    async with gate_world(tmp_path, Sheet(), Write()) as here:
        with pytest.raises(Refusal) as caught:
            await here.gate.drafts.draft("sheet", input, ONE)
        assert caught.value.sentence.endswith(".")
