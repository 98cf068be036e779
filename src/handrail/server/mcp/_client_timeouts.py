"""Timeouts of MCP clients: how long a client waits for the answer to a call.

A client that gives up cancels the call, or forgets it. Handed back in time, the call goes on and the model gets its id.
"""

import math
from functools import lru_cache

WITHOUT_PROGRESS_SECONDS = 45.0
"""The longest wait of a client that asks for no progress: the SDKs end such a request after 60 s."""
HARD_LIMITS = {"cline": 45.0, "kimi": 45.0}
"""The longest wait of clients that end a call at 60 s even if it reports progress, by the start of their name."""


@lru_cache(64)
def longest_wait(client: str, *, has_progress: bool, configured: float) -> float:
    """Seconds after which a call must be answered or handed back, whatever its input asks for.

    `configured` is the wait that the person set for every call. A longer one counts, but for clients with a hard limit.
    """
    name = client.lower()
    known = min((limit for start, limit in HARD_LIMITS.items() if name.startswith(start)), default=math.inf)
    return known if has_progress else min(known, max(configured, WITHOUT_PROGRESS_SECONDS))
