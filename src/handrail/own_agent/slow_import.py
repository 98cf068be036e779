"""Imports of the model libraries and the MCP SDK, which take long: off the event loop, one at a time, as few modules as possible.

The packages of the model libraries import everything that they have in `__init__.py`, of which a conversation uses half.
See `handrail.lazy_packages`.
"""

from __future__ import annotations

from threading import Lock

from anyio import to_thread

from handrail.lazy_packages import LazyPackages

LAZY = LazyPackages(
    {
        "genai_prices",
        "griffe",
        "openai",
        "openai.types",
        "openai.types.chat",
        "openai.types.graders",
        "openai.types.responses",
        "openai.types.shared",
        "pydantic_ai",
        "pydantic_ai.agent",
        "pydantic_ai.capabilities",
        "pydantic_ai.toolsets",
        "pydantic_ai.workspaces",
        "pydantic_graph",
    },
    importers="handrail.own_agent",
    versions={"pydantic_ai": "pydantic_ai_slim"},  # every request names it
)
"""The packages where this saves time."""
LOADING = Lock()
"""Held while importing: two threads that import the same packages can see half of a module, and an abandoned thread may
still be running."""


async def import_slowly(*names: str) -> None:
    """Import these modules in another thread."""
    for name in names:
        await to_thread.run_sync(_import_locked, name, abandon_on_cancel=True)


def _import_locked(name: str) -> None:
    with LOADING:
        import_lazily(name)


def import_lazily(name: str) -> None:
    """Import a module; the caller holds LOADING."""
    LAZY.import_modules(name)
