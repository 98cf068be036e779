"""Sign-ins of browsers: a registered key signs in again, once for each challenge, until the sign-in is revoked."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.browser_keys import BrowserKey

from handrail.server.access import Access
from handrail.server.browser_key import BadKey, read_key
from handrail.server.sign_ins import CHALLENGE_SECONDS, MOST_BEARERS, MOST_CODES, SignIn, hash_secret
from handrail.store.journal import open_journal

pytestmark = pytest.mark.anyio


@pytest.fixture
async def access(tmp_path: Path) -> AsyncIterator[Access]:
    async with open_journal(tmp_path / "handrail.db", tmp_path / "handrail.head") as journal:
        yield Access(journal, [], b"")


def sign_in(access: Access, key: BrowserKey) -> tuple[SignIn, str]:
    redeemed = access.sign_ins.redeem(access.sign_ins.issue_code(), read_key(key.public), "Chrome on Linux")
    assert not isinstance(redeemed, str)
    return redeemed


def sign_again(access: Access, id: str, key: BrowserKey) -> tuple[SignIn, str] | str:
    nonce = access.sign_ins.challenge(id)
    assert nonce is not None
    return access.sign_ins.answer(id, nonce, key.sign(id, nonce))


async def test_a_signed_challenge_gives_another_bearer_of_the_same_sign_in(access: Access) -> None:
    key = BrowserKey()
    signed, first = sign_in(access, key)
    again = sign_again(access, signed.id, key)
    assert not isinstance(again, str)
    assert again[0].id == signed.id
    people = [access.person(bearer) for bearer in (first, again[1])]
    assert [person and (person.sign_in, person.approves) for person in people] == [(signed.id, True)] * 2


async def test_a_challenge_is_used_once_and_only_by_the_sign_in_that_asked(access: Access) -> None:
    mine, other = BrowserKey(), BrowserKey()
    own, other_id = sign_in(access, mine)[0].id, sign_in(access, other)[0].id
    nonce = access.sign_ins.challenge(own) or ""
    assert access.sign_ins.answer(other_id, nonce, other.sign(other_id, nonce)) == "unsigned"
    assert access.sign_ins.answer(own, nonce, mine.sign(own, nonce)) == "unsigned", (
        "the first try has used it up"
    )
    nonce = access.sign_ins.challenge(own) or ""
    assert not isinstance(access.sign_ins.answer(own, nonce, mine.sign(own, nonce)), str)
    assert access.sign_ins.answer(own, nonce, mine.sign(own, nonce)) == "unsigned"


@pytest.mark.parametrize("signature", [b"", b"\0" * 64, b"\xff" * 64, b"x" * 63, b"x" * 200])
async def test_what_is_no_signature_of_the_key_signs_nobody_in(access: Access, signature: bytes) -> None:
    own = sign_in(access, BrowserKey())[0].id
    nonce = access.sign_ins.challenge(own) or ""
    assert access.sign_ins.answer(own, nonce, signature) == "unsigned"


async def test_the_key_of_another_browser_signs_nobody_in(access: Access) -> None:
    own = sign_in(access, BrowserKey())[0].id
    assert sign_again(access, own, BrowserKey()) == "unsigned"


async def test_a_challenge_lasts_half_a_minute(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    key = BrowserKey()
    own = sign_in(access, key)[0].id
    nonce = access.sign_ins.challenge(own) or ""
    monkeypatch.setattr("handrail.server.sign_ins.CHALLENGE_SECONDS", -1.0)
    late = access.sign_ins.challenge(own) or ""
    assert CHALLENGE_SECONDS == 30.0
    assert access.sign_ins.answer(own, late, key.sign(own, late)) == "unsigned"
    assert access.sign_ins.answer(own, nonce, key.sign(own, nonce)) != "unsigned"


async def test_revoking_ends_every_bearer_and_the_key(access: Access) -> None:
    key = BrowserKey()
    signed, first = sign_in(access, key)
    again = sign_again(access, signed.id, key)
    ended = [access.revocation(bearer) for bearer in (first, again[1])]
    assert access.sign_ins.revoke(signed.id, "for a test") is not None
    assert [event.is_set() for event in ended] == [True, True]
    assert access.person(first) is None
    assert access.sign_ins.challenge(signed.id) is None
    assert access.sign_ins.answer(signed.id, "n", b"") == "signed out"
    assert access.sign_ins.revoke(signed.id, "again") is None


async def test_a_browser_has_a_few_bearers_and_one_more_ends_the_oldest(access: Access) -> None:
    key = BrowserKey()
    signed, first = sign_in(access, key)
    results = [sign_again(access, signed.id, key) for _ in range(MOST_BEARERS)]
    assert access.person(first) is None
    assert all(access.person(result[1]) is not None for result in results)


async def test_challenges_and_sign_ins_are_bounded(access: Access) -> None:
    key = BrowserKey()
    own = sign_in(access, key)[0].id
    nonces = [access.sign_ins.challenge(own) or "" for _ in range(MOST_CODES + 1)]
    assert access.sign_ins.answer(own, nonces[0], key.sign(own, nonces[0])) == "unsigned"
    for _ in range(MOST_CODES):
        sign_in(access, key)
    assert len(access.sign_ins.current) == MOST_CODES
    assert access.sign_ins.challenge(own) is None


async def test_a_sign_in_without_a_key_gets_no_challenge(access: Access) -> None:
    redeemed = access.sign_ins.redeem(access.sign_ins.issue_code())
    assert not isinstance(redeemed, str)
    assert access.sign_ins.challenge(redeemed[0].id) is None
    assert access.sign_ins.answer(redeemed[0].id, "n", b"") == "signed out"


async def test_the_next_daemon_knows_the_key_and_nothing_kept_is_a_bearer(tmp_path: Path) -> None:
    kept: list[bytes] = []
    async with open_journal(tmp_path / "handrail.db", tmp_path / "handrail.head") as journal:
        access, key = Access(journal, [], b""), BrowserKey()
        access.sign_ins.keep = kept.append
        signed, bearer = sign_in(access, key)
        later = Access(journal, [], kept[-1])
        assert bearer.encode() not in kept[-1]
        assert later.person(bearer) == access.person(bearer)
        assert not isinstance(sign_again(later, signed.id, key), str)


async def test_a_sign_in_of_an_older_daemon_stays_valid_and_has_no_key(tmp_path: Path) -> None:
    older = json.dumps({hash_secret("bearer"): ["s1", "page"]}).encode()
    async with open_journal(tmp_path / "handrail.db", tmp_path / "handrail.head") as journal:
        access = Access(journal, [], older)
        person = access.person("bearer")
        assert person is not None
        assert (person.sign_in, person.approves) == ("s1", True)
        assert access.sign_ins.challenge("s1") is None


def _encode(key: PublicKeyTypes) -> str:
    return base64.b64encode(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


@pytest.mark.parametrize("size", [0, 10, 91, 500])
def test_what_is_no_key_is_refused_with_a_sentence(size: int) -> None:
    with pytest.raises(BadKey, match="public key of this browser"):
        read_key(base64.b64encode(b"\x30" * size).decode())


def test_only_keys_on_the_curve_p_256_are_taken() -> None:
    for key in (ec.generate_private_key(ec.SECP384R1()), rsa.generate_private_key(65537, 2048)):
        with pytest.raises(BadKey, match="public key of this browser"):
            read_key(_encode(key.public_key()))
    with pytest.raises(BadKey):
        read_key("not base64!")
