"""What people read when the daemon ends with an exception: a sentence, never a traceback."""

from pathlib import Path

from handrail.daemon.state_files import explain_failure
from handrail.errors import BadRecord

LOGS = Path("/h/logs")


def test_a_sentence_is_found_inside_nested_groups() -> None:
    problem = BadRecord("rules", "id 'r1'", "ValidationError")
    group = ExceptionGroup("a", [ValueError("secret input"), ExceptionGroup("b", [problem])])
    assert explain_failure(group, LOGS) == str(problem)
    assert "\n" not in str(problem)


def test_an_error_of_the_system_is_shown_and_any_other_only_by_its_type() -> None:
    full = OSError(28, "No space left on device")
    assert "No space left on device. `handrail doctor`" in explain_failure(ExceptionGroup("a", [full]), LOGS)
    other = explain_failure(ExceptionGroup("a", [ValueError("secret input")]), LOGS)
    assert "because of an error: ValueError." in other
    assert "/h/logs/daemon.log" in other
    assert "secret input" not in other
