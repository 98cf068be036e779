"""The memo holds little, and says so."""

from handrail.keeper.requests import MEMO_MAX, Memo


def test_what_is_remembered_is_recalled_until_forgotten() -> None:
    memo = Memo()
    assert memo.recall("a") is None
    assert memo.remember("a", b"1")
    assert memo.recall("a") == b"1"
    assert memo.remember("a", b"")
    assert memo.recall("a") is None


def test_too_much_is_refused_and_changes_nothing() -> None:
    memo = Memo()
    assert memo.remember("a", bytes(MEMO_MAX - 2))
    assert not memo.remember("b", b"1")
    assert not memo.remember("a", bytes(MEMO_MAX))
    assert memo.recall("a") == bytes(MEMO_MAX - 2)
    assert memo.remember("a", b"")
    assert memo.remember("b", b"1")
