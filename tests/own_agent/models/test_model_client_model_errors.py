"""What went wrong with a request, in sentences without a key."""

from pydantic_ai.exceptions import ModelHTTPError

from handrail.own_agent.models.api_keys import Keys
from handrail.own_agent.models.model import Choice, ModelError
from handrail.own_agent.models.model_client import QUOTED, classify_error

KEY = "sk-0123456789-0123456789"


def test_not_even_half_a_key_is_left_where_a_long_complaint_is_cut() -> None:
    body = {"message": "x" * (QUOTED - 10) + KEY}
    fault = ModelHTTPError(403, "claude", body)
    found = classify_error(
        fault, Choice("anthropic", "claude"), "Anthropic", "", Keys({"ANTHROPIC_API_KEY": KEY}).hidden
    )
    assert isinstance(found, ModelError)
    assert "xxx" in found.sentence
    assert KEY[:5] not in found.sentence
