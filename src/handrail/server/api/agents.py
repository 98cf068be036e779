"""Routes of agents: list them, log in to one, list its sessions and continue one of them as a thread."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.session_list import ListedSession
from handrail.server.api import threads
from handrail.server.api.thread_models import (
    AdoptBody,
    AgentSessionView,
    AgentView,
    LoginBody,
    ThreadView,
    agent_session_view,
    agent_view,
)
from handrail.server.context import ServerContext, actor_of, person_of
from handrail.store.actor import Actor


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/agents")
    async def agents(request: Request) -> list[AgentView]:
        listed, running = await context.registry.listing(), context.agents.running
        return [agent_view(agent, running.get(agent.name), person_of(request)) for agent in listed]

    @router.post("/agents/{name}/login", status_code=204)
    async def login(name: str, body: LoginBody) -> Response:
        threads.require_agent(context, name, status=404)
        # A program keeps its login in memory: log in where it was asked for, in the one used last.
        agent = context.agents.running.get(name) or await context.agents.get(name)
        await agent.login(body.method)
        return Response(status_code=204)

    return router


def session_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/agents/{name}/sessions")
    async def sessions(
        name: str, workspace: Annotated[str | None, Query(max_length=4096)] = None
    ) -> list[AgentSessionView]:
        threads.require_agent(context, name, status=404)
        folder = await threads.resolve_workspace(workspace)
        listed = await context.prompts.sessions.listed(name, folder, folder)
        known = await _find_threads(context, name)
        return [agent_session_view(session, known.get(session.id)) for session in listed]

    @router.post("/agents/{name}/sessions", status_code=201)
    async def adopt(name: str, body: AdoptBody, request: Request) -> ThreadView:
        threads.require_agent(context, name, status=404)
        folder = await threads.resolve_workspace(body.workspace)
        if thread := (await _find_threads(context, name)).get(body.session):
            return await threads.load_fresh_view(context, thread)
        session = await _find_session(context, name, folder, body.session)
        return await threads.load_fresh_view(context, await _adopt(context, name, session, actor_of(request)))

    return router


async def _find_threads(context: ServerContext, agent: str) -> dict[str, str]:
    """The thread of each session of an agent."""
    await threads.wait_for_writes(context)
    return await context.records.threads.threads_of_sessions(agent)


async def _find_session(
    context: ServerContext, agent: str, folder: str | None, session: str
) -> ListedSession:
    for listed in await context.prompts.sessions.listed(agent, folder, None):
        if listed.id == session:
            return listed
    raise HTTPException(
        404, f"{agent} has no session {session[:100]}. `handrail agents sessions` lists them."
    )


async def _adopt(context: ServerContext, agent: str, session: ListedSession, by: Actor) -> str:
    """Open a thread for a session; it is deleted again if the agent cannot take the session up."""
    workspace = await threads.resolve_workspace(session.cwd)
    thread = context.threads.open(workspace=workspace, title=session.title, agent=agent, by=by)
    try:
        await context.threads.written()
        await context.prompts.adopt(thread, session)
    except AgentError:
        await threads.delete_thread(context, thread, by)
        raise
    return thread
