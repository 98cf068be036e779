"""The guard of the listener for devices: stricter than that of loopback.

Without a paired device's bearer only the page's files, the sign-in and the CA's certificate can be reached, and sign-ins
are limited per address. Agents have no route here, and no bearer of a browser at the desk or of a command line is good.
"""

from collections.abc import Callable
from dataclasses import replace

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Scope

from handrail.server.access import Access, Person
from handrail.server.guard import SIGN_IN_PATHS, Area, Guard, Refusal

CA_PATH = "/handrail-ca.crt"
MOST_ATTEMPTS = 30
"""Sign-in requests of one address within ATTEMPT_SECONDS. A page needs two for each load."""
ATTEMPT_SECONDS = 60.0
MOST_PEERS = 1000
"""Addresses whose attempts are counted. Bounds memory."""
DESK_PATHS = (
    "/api/code",
    "/api/down",
    "/api/credentials",
    "/api/policy",
    "/api/editors",
    "/api/keys",
    "/api/secrets",
    "/api/logins",
    "/api/devices/listener",
    "/api/settings",
)
"""What no device changes: who else may sign in or decide, and whether Handrail runs."""
HIGH_RISK_PATHS = (
    "/api/rules",
    "/api/folders",
    "/api/servers",
    "/api/terminals",
    "/api/undo",
    "/api/clients",
)
"""What a device with limited rights does not change. It may pause the agents, but not resume them."""
_READS = ("/api/rules/test", "/api/rules/propose")
"""POST, but they change nothing."""
AT_DESK = (
    "This can only be done at your desk: on the page that `handrail open` opens, or on the command line."
)
HIGH_RISK = (
    'High risk is decided at your desk: `high_risk = "desk"` in [devices] of config.toml. Devices may allow low and medium '
    "risk, and deny anything."
)


class DeviceGuard(Guard):
    """ASGI middleware for paired devices."""

    def __init__(
        self, app: ASGIApp, access: Access, host: str, *, proxied: bool, limited: Callable[[], bool]
    ) -> None:
        """`limited` is whether devices leave high risk to the desk."""
        super().__init__(app, access, (host,), "https")
        self._proxied = proxied
        self._limited = limited
        self._attempts = Attempts()

    @property
    def _wrong_name(self) -> str:
        return f"This is not a name Handrail answers to here; open https://{self._host}."

    @property
    def _sign_in_first(self) -> str:
        return "This device is not paired. Run `handrail pair` at your desk."

    def _check_bearer(self, scope: Scope, headers: Headers, area: Area) -> Refusal | None:
        path = scope["path"]
        scope["handrail.device"] = "proxied" if self._proxied else "direct"
        if area == "agent" or path.startswith("/gallery"):
            return Refusal(404, "There is nothing at this address.")
        if path in SIGN_IN_PATHS and not self._attempts.count(_peer(scope)):
            return Refusal(429, "Too many attempts to sign in. Wait a minute, then try again.")
        if area == "open" and path not in SIGN_IN_PATHS:
            area = "person"
        return super()._check_bearer(scope, headers, area)

    def _find_person(self, bearer: str) -> Person | None:
        person = self._access.person(bearer)
        return replace(person, limited=self._limited()) if person is not None and person.device else None

    def _check_person(self, scope: Scope, person: Person | None, area: Area) -> Refusal | None:
        refusal = super()._check_person(scope, person, area)
        if refusal is not None or person is None:
            return refusal
        path = scope["path"]
        if scope["type"] == "websocket" or scope["method"] in ("GET", "HEAD") or path in _READS:
            return None
        if path.startswith(DESK_PATHS):
            return Refusal(403, AT_DESK)
        resumes = path == "/api/pause" and scope["method"] == "DELETE"
        is_high = resumes or path.startswith(HIGH_RISK_PATHS)
        return Refusal(403, HIGH_RISK) if person.limited and is_high else None


class Attempts:
    """Counts sign-in requests per address, in windows of ATTEMPT_SECONDS."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[float, int]] = {}

    def count(self, peer: str) -> bool:
        """Count one request; False if the address made too many."""
        now = anyio.current_time()
        began, made = self._windows.pop(peer, (now, 0))
        if now - began >= ATTEMPT_SECONDS:
            began, made = now, 0
        while len(self._windows) >= MOST_PEERS:
            del self._windows[next(iter(self._windows))]
        self._windows[peer] = began, made + 1
        return made < MOST_ATTEMPTS


def _peer(scope: Scope) -> str:
    client: tuple[str, int] | None = scope.get("client")
    return client[0] if client else ""
