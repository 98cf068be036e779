"""JSON models of the daemon itself: its last restart and its health. A daemon needs them before the rest of the API."""

from handrail.server.api.models import Wire


class Restart(Wire):
    """What the daemon recovered when it started."""

    seq: int
    at: int
    pid: int
    crashed: bool
    interrupted: int
    approvals_kept: int
    terminals_adopted: int


class ProcessHealth(Wire):
    """Resource use of one process."""

    pid: int
    rss_bytes: int
    descriptors: int
    loop_lag_ms: float


class Health(Wire):
    """Whether the daemon is up. The process figures are only for a signed-in person."""

    ok: bool
    version: str
    daemon: ProcessHealth | None = None
    keeper: ProcessHealth | None = None
    hung_keeper: int | None = None
    """The pid of a keeper that does not answer. `handrail down --force` ends it."""
    restarts: int = 0
    """How often the keeper has restarted the daemon because it had ended unexpectedly, since the keeper began."""
    restarted_at: int | None = None
    """When that was last, in milliseconds since 1970."""
