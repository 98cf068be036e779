"""Push messages: encrypted for one browser, signed with a key that stays, refused for a bad subscription."""

import json
from pathlib import Path

import pytest
from tests.support.push_service import push_service

from handrail.server.web_push import PushSender
from handrail.store.values import PushSubscription


def test_a_message_is_read_by_its_browser_alone_and_signed_with_a_key_that_stays(tmp_path: Path) -> None:
    sender = PushSender(tmp_path / "tls" / "push.key")
    with push_service() as service:
        keys = service.subscription["keys"]
        subscription = PushSubscription(endpoint=service.subscription["endpoint"], **keys)
        assert sender.send(subscription, json.dumps({"title": "A call needs you, high risk"})) == 201
        assert json.loads(service.wait()) == {"title": "A call needs you, high risk"}
        service.status = 410
        assert sender.send(subscription, "") == 410
    assert PushSender(tmp_path / "tls" / "push.key").public_key == sender.public_key
    assert (tmp_path / "tls" / "push.key").stat().st_mode & 0o777 == 0o600


def test_a_subscription_with_a_bad_key_is_a_value_error(tmp_path: Path) -> None:
    bad = PushSubscription(endpoint="http://127.0.0.1:1/", p256dh="A" * 87, auth="A" * 22)
    with pytest.raises(ValueError, match="point"):
        PushSender(tmp_path / "push.key").send(bad, "")
