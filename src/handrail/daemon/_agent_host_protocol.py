"""Builds and runs the agent host for VS Code servers, if `[ahp]` enables it. Part of the composition root.

Its modules are imported only then: they need FastAPI, which a daemon otherwise imports with its first page.
"""

import logging
from importlib import import_module
from pathlib import Path

import anyio
import anyio.to_thread

from handrail.config import AhpSection
from handrail.paths import Places
from handrail.server.context import ServerContext
from handrail.store.blobs import Blobs
from handrail.terminal.person_check import DoorLaunchers

log = logging.getLogger(__name__)


async def serve_ahp(
    settings: AhpSection, places: Places, context: ServerContext, blobs: Blobs, launchers: DoorLaunchers
) -> None:
    """Serve until cancelled. A fault here is logged and ends only the agent host."""
    if not settings.enabled:
        return
    await _accepted(context)
    try:
        await _serve(settings, places, context, blobs, launchers)
    except OSError as problem:
        log.error("[ahp] cannot be served: %s", problem)
    except Exception:
        log.exception("the agent host ended with an error")


async def _accepted(context: ServerContext) -> None:
    """Wait until a person has accepted config.toml."""
    released = anyio.Event()
    context.policy.on_release.append(released.set)
    if context.policy.holds_config:
        log.warning("[ahp] waits: no person has accepted config.toml yet")
        await released.wait()


async def _serve(
    settings: AhpSection, places: Places, context: ServerContext, blobs: Blobs, launchers: DoorLaunchers
) -> None:
    await anyio.to_thread.run_sync(import_module, "handrail.server.ahp.ahp_server")
    from handrail.server.ahp.ahp_host import AhpHost  # noqa: PLC0415
    from handrail.server.ahp.ahp_server import AhpServer, listen  # noqa: PLC0415

    path = Path(settings.socket) if settings.socket else places.ahp_socket
    server = AhpServer(AhpHost(context, blobs), context.editors, launchers, settings.token)
    await server.serve(listen(path), settings.port)
