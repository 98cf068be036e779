"""The listener for paired devices: TLS on one address, or plain HTTP on loopback behind a proxy. Off by default.

The keeper holds its port, so that no other program listens there while no daemon does. It also remembers the address,
so that a restart of the daemon goes on listening.
"""

import errno
import json
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from starlette.types import ASGIApp

from handrail.config import DevicesSection
from handrail.server.connection_limit import ConnectionBudget
from handrail.server.web_server import WebServer
from handrail.terminal.keeper_client import Keeper, KeeperError

if TYPE_CHECKING:
    from handrail.server.web_push import PushSender

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 128
"""Connections of devices. They cannot take those of the page at the desk."""
_NO_HOST = ("0.0.0.0", "::")
_PROBE = ("192.0.2.1", 9)
"""An address of no network (RFC 5737). A UDP socket that is connected to it sends nothing, but has a local address."""


class ListenError(Exception):
    """The listener cannot start; the message has the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAddress:
    """Where devices connect."""

    address: str
    """The IP address that is bound."""
    port: int
    name: str
    """The host in the link: the address, or a name that leads to it or to the proxy."""
    behind_proxy: bool = False

    @property
    def host(self) -> str:
        """As browsers send it in `Host`."""
        name = f"[{self.name}]" if ":" in self.name and not self.behind_proxy else self.name
        return name if self.behind_proxy or self.port == 443 else f"{name}:{self.port}"

    @property
    def url(self) -> str:
        return f"https://{self.host}"


AppBuilder = Callable[[DeviceAddress], ASGIApp]


class DeviceListener:
    """Starts and stops the listener."""

    def __init__(
        self, keeper: Keeper, folder: Path, settings: DevicesSection, limited: Callable[[], bool]
    ) -> None:
        """`folder` holds the certificates, `limited` is whether devices leave high risk to the desk."""
        self._keeper = keeper
        self._folder = folder
        self._settings = settings
        self.limited = limited
        self.current: DeviceAddress | None = None
        """Where it listens now; None if it does not."""
        self.keep: Callable[[bytes], None] = lambda _blob: None
        """Called with the serialised address after each change. The keeper holds it for the next daemon."""
        self._changing = anyio.Lock()
        self._web: WebServer | None = None
        self._group: TaskGroup | None = None
        self._build_app: AppBuilder | None = None

    @property
    def ca_file(self) -> Path:
        return self._folder / "ca.crt"

    def build_push_sender(self) -> "PushSender":
        """The sender of push messages. Creates its key the first time. Blocks."""
        from handrail.server.web_push import PushSender  # noqa: PLC0415 - cryptography takes 6 MB

        return PushSender(self._folder / "push.key")

    async def run(self, build_app: AppBuilder, kept: bytes) -> None:
        """Serve until cancelled. `kept` is what `keep` was called with before a restart."""
        self._build_app = build_app
        async with anyio.create_task_group() as group:
            self._group = group
            if kept:
                await self._resume(DeviceAddress(**json.loads(kept)))
            await anyio.sleep_forever()

    async def start(
        self,
        address: str | None = None,
        port: int | None = None,
        name: str | None = None,
        behind_proxy: bool | None = None,
    ) -> DeviceAddress:
        """Listen, on the configured address unless another is given. Raises ListenError.

        Without arguments, a listener that runs goes on.
        """
        if self.current is not None and (address, port, name, behind_proxy) == (None,) * 4:
            return self.current
        wanted = self._complete(address, port, name, behind_proxy)
        async with self._changing:
            if wanted != self.current:
                await self._stop()
                await self._serve(wanted)
        return wanted

    async def stop(self) -> bool:
        """Stop listening and close every connection; False if it did not listen."""
        async with self._changing:
            return await self._stop()

    async def get_fingerprint(self) -> str:
        """SHA-256 of the CA's certificate; empty behind a proxy, which has its own."""
        if self.current is None or self.current.behind_proxy:
            return ""
        from handrail.server.certificates import Certificates  # noqa: PLC0415 - cryptography takes 6 MB

        return await to_thread.run_sync(lambda: Certificates(self._folder).ca_fingerprint)

    def _complete(
        self, address: str | None, port: int | None, name: str | None, behind_proxy: bool | None
    ) -> DeviceAddress:
        settings = self._settings
        proxied = settings.behind_proxy if behind_proxy is None else behind_proxy
        bound = LOOPBACK if proxied else address or settings.address or find_own_address()
        host = (name or settings.name or ("" if proxied else bound)).lower()
        if not bound or not host:
            missing = "--name, the name of the proxy" if bound else "--address, the address to listen on"
            raise ListenError(f"Handrail does not know where devices connect. Add {missing}.")
        if bound in _NO_HOST:
            raise ListenError(
                f"{bound} means every network. Name one address of this machine with --address."
            )
        return DeviceAddress(address=bound, port=port or settings.port, name=host, behind_proxy=proxied)

    async def _resume(self, address: DeviceAddress) -> None:
        try:
            await self._serve(address)
        except ListenError as problem:
            log.warning("devices cannot connect any more: %s", problem)

    async def _serve(self, wanted: DeviceAddress) -> None:
        if self._group is None or self._build_app is None:
            raise ListenError("Handrail is starting. Try again in a moment.")
        tls = None if wanted.behind_proxy else await to_thread.run_sync(self._build_tls, wanted.name)
        listener = await self._listen(wanted)
        budget = ConnectionBudget(http=MOST_CONNECTIONS, local=0, backlog=MOST_CONNECTIONS)
        self._web = WebServer(self._build_app(wanted), budget, tls)
        self._group.start_soon(self._web.serve, [listener])
        self.current = wanted
        self.keep(json.dumps(asdict(wanted)).encode())

    def _build_tls(self, name: str) -> ssl.SSLContext:
        from handrail.server.certificates import BadName, Certificates  # noqa: PLC0415 - cryptography takes 6 MB

        try:
            return Certificates(self._folder).build_context(name)
        except BadName as problem:
            raise ListenError(str(problem)) from None
        except (OSError, ValueError) as problem:
            raise ListenError(
                f"The certificates in {self._folder} cannot be used: {problem}. Remove that folder to create new ones; "
                "phones must then install the new CA."
            ) from None

    async def _listen(self, wanted: DeviceAddress) -> socket.socket:
        try:
            return await self._keeper.listen_at(wanted.address, wanted.port)
        except KeeperError as problem:
            raise ListenError(
                f"Handrail cannot listen on port {wanted.port} of {wanted.address}. {problem} "
                "Choose another with --address or --port."
            ) from None

    async def _stop(self) -> bool:
        old, web = self.current, self._web
        if old is None or web is None:
            return False
        self.current = self._web = None
        self.keep(b"")
        web.stop()
        await self._release(old)
        return True

    async def _release(self, old: DeviceAddress) -> None:
        try:
            await self._keeper.release(old.address, old.port)
        except KeeperError as problem:
            log.warning("the keeper still holds port %s of %s: %s", old.port, old.address, problem)


def find_own_address() -> str:
    """This machine's address in its network; empty if it has none. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_PROBE)
        except OSError:
            return ""
        return probe.getsockname()[0]


def is_own_address(address: str) -> bool:
    """Whether a peer with this address is on this machine: only then can it be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address.partition("%")[0], 0))
        except OSError as problem:
            return problem.errno != errno.EADDRNOTAVAIL
        return True
