"""The agent of a new thread, and the thread that the first run creates."""

import contextlib

from handrail.errors import Unwritable
from handrail.server.context import ServerContext


async def default_agent(context: ServerContext) -> str:
    """The default agent: the one used last, else the first that is installed and ready."""
    last = await context.records.threads.find(limit=1)
    if last and context.registry.spec(last[0].agent) is not None:
        return last[0].agent
    listed = await context.registry.listing()
    return next(agent.name for agent in listed if agent.found and not agent.why)


async def create_first_thread(context: ServerContext) -> None:
    """Create a thread on the first run, so that a person can type without setup."""
    if not await context.records.threads.find(limit=1):
        with contextlib.suppress(Unwritable):  # creating one by hand reports the error
            await context.threads.default(None, await default_agent(context))
