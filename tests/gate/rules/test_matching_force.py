"""Where and when a rule holds: by expiry, folder, trust, and where it came from."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.policy_values import rule

from handrail.gate.rules.matching import CHANGED, NOT_TRUSTED, FolderState, Origin, explain_lapse
from handrail.store.values import Effect

TRUSTED = FolderState(root="/w", trusted=True, file_trusted=True, now=100)
CHANGED_FILE = replace(TRUSTED, file_trusted=False)
STRANGE = replace(TRUSTED, trusted=False, file_trusted=False)


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_no_rule_outlives_its_hour_or_leaves_its_folder(effect: Effect) -> None:
    assert explain_lapse(rule(effect, expires_at=101), "answer", TRUSTED) == ""
    assert explain_lapse(rule(effect, expires_at=100), "answer", TRUSTED) == "It expired."
    assert explain_lapse(rule(effect, workspace="/w"), "answer", TRUSTED) == ""
    assert explain_lapse(rule(effect, workspace="/w2"), "answer", TRUSTED) == "It holds in /w2 only."


@pytest.mark.parametrize("effect", ["ask", "deny"])
@pytest.mark.parametrize("origin", ["answer", "config", "project"])
def test_what_forbids_needs_no_trust(effect: Effect, origin: Origin) -> None:
    assert explain_lapse(rule(effect), origin, STRANGE) == ""


@pytest.mark.parametrize(
    ("origin", "fields", "here", "says"),
    [
        ("answer", {}, TRUSTED, ""),
        ("answer", {}, STRANGE, NOT_TRUSTED),
        ("config", {}, STRANGE, NOT_TRUSTED),
        ("answer", {"workspace": "/w", "scope": "project"}, STRANGE, ""),
        ("answer", {"workspace": "/w", "scope": "session"}, STRANGE, ""),
        ("answer", {"scope": "session"}, STRANGE, NOT_TRUSTED),
        ("project", {"workspace": "/w", "scope": "project"}, STRANGE, NOT_TRUSTED),
        ("project", {"workspace": "/w", "scope": "project"}, CHANGED_FILE, CHANGED),
        ("project", {"workspace": "/w", "scope": "project"}, TRUSTED, ""),
        ("config", {}, CHANGED_FILE, ""),
    ],
)
def test_what_allows_needs_trust_unless_a_person_made_it_for_that_very_folder(
    origin: Origin, fields: dict[str, Any], here: FolderState, says: str
) -> None:
    assert explain_lapse(rule("allow", **fields), origin, here) == says
