"""Messages over HTTP for approvals that nobody looks at: to an ntfy topic and to a webhook.

A message says that a call needs a person, how high its risk is, and where to answer. It holds no title, argument or name
of an agent. Both addresses are settings of the person. Redirects are not followed, and no answer is read.
"""

import http.client
import json
import logging
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from handrail.config import NotifySection
from handrail.daemon.approval_watch import ApprovalWatch
from handrail.daemon.push_notifications import build_message
from handrail.gate.gate import Gate
from handrail.lazy_dataclass import dataclass
from handrail.server.context import ServerContext

log = logging.getLogger(__name__)

BURST_SECONDS = 5.0
"""Least seconds between two messages; a burst of approvals gives one."""
SEND_SECONDS = 10.0
"""Bounds the wait for a receiver."""
RETRY_SECONDS = (1.0, 4.0, 15.0)
"""Pauses before a message is sent again. Bounded: an older question is rarely still open."""
_PRIORITY = {"low": "low", "medium": "default", "high": "high"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpMessage:
    """One POST."""

    channel: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class HttpNotifier:
    """Sends a message to each configured address."""

    def __init__(
        self,
        gate: Gate,
        settings: NotifySection,
        looking: Callable[[], int],
        page_url: Callable[[], str],
        *,
        burst: float = BURST_SECONDS,
        retry: tuple[float, ...] = RETRY_SECONDS,
        held: Callable[[], bool] = lambda: False,
    ) -> None:
        """`looking` returns the number of pages that a person looks at, `page_url` where the page is. While `held`, nothing is
        sent: no person has accepted the addresses."""
        self._watch = ApprovalWatch(gate, grace=settings.after_seconds, burst=burst)
        self._settings = settings
        self._looking = looking
        self._page_url = page_url
        self._retry = retry
        self._held = held

    async def run(self) -> None:
        """Send messages about approvals opened from now on, until cancelled."""
        await self._watch.run(self._notify)

    def follow(self, settings: NotifySection) -> None:
        """Use other settings from now on."""
        self._settings = settings
        self._watch.grace = settings.after_seconds

    async def _notify(self) -> bool:
        waiting = self._watch.take_waiting()
        if not waiting or self._looking() or self._held() or is_quiet_now(self._settings):
            return False
        message = build_message(waiting)
        async with anyio.create_task_group() as group:
            for each in build_http_messages(self._settings, message, self._page_url()):
                group.start_soon(self._send, each)
        return True

    async def _send(self, message: HttpMessage) -> None:
        """Send, and again after each pause while the receiver is unreachable or asks for it."""
        for pause in (*self._retry, None):
            problem, is_final = await to_thread.run_sync(_try_to_send, message, abandon_on_cancel=True)
            if not problem:
                return
            if pause is None or is_final:
                log.warning("no message could be sent by %s: %s", message.channel, problem)
                return
            await anyio.sleep(pause)


def build_http_messages(
    settings: NotifySection, message: Mapping[str, str], page_url: str
) -> list[HttpMessage]:
    """The messages for what `build_message` says, with a link to the page."""
    link, title = f"{page_url}{message['path']}", message["title"]
    risk = next(each for each in ("high", "medium", "low") if f"{each} risk" in title)
    messages: list[HttpMessage] = []
    if settings.ntfy:
        headers = {"Title": "Handrail", "Click": link, "Priority": _PRIORITY[risk], "Tags": "raising_hand"}
        messages.append(HttpMessage(channel="ntfy", url=settings.ntfy, headers=headers, body=title.encode()))
    if settings.webhook:
        body = json.dumps({"title": title, "risk": risk, "link": link}).encode()
        headers = {"Content-Type": "application/json"}
        messages.append(HttpMessage(channel="webhook", url=settings.webhook, headers=headers, body=body))
    return messages


def build_http_notifier(context: ServerContext, settings: NotifySection) -> HttpNotifier:
    """The notifier of a running daemon. Its links lead to the address of devices, if anything listens there."""

    def page_url() -> str:
        current = context.devices.current
        return context.url if current is None else current.url

    looking, policy = context.presence.count_looking, context.policy
    return HttpNotifier(context.gate, settings, looking, page_url, held=lambda: policy.holds_config)


def is_quiet_now(settings: NotifySection) -> bool:
    """Whether it is a quiet hour, by the clock of this machine."""
    return is_quiet(settings.quiet_hours, time.localtime().tm_hour)


def is_quiet(hours: str, hour: int) -> bool:
    """Whether an hour is within hours such as `22-7`, which may go over midnight."""
    if not hours:
        return False
    begin, end = map(int, hours.split("-"))
    return begin <= hour < end if begin < end else hour >= begin or hour < end


def _try_to_send(message: HttpMessage) -> tuple[str, bool]:
    """Send once. Returns what went wrong, without the address, and whether another attempt would be no use. Blocks."""
    target = urlsplit(message.url)
    kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
    path = f"{target.path or '/'}{f'?{target.query}' if target.query else ''}"
    try:
        connection = kind(target.hostname or "", target.port, timeout=SEND_SECONDS)
        try:
            connection.request("POST", path, message.body, dict(message.headers))
            status = connection.getresponse().status
        finally:
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as problem:
        return type(problem).__name__, isinstance(problem, ValueError)
    if status < 300:
        return "", False
    return f"status {status}", status < 500 and status != 429
