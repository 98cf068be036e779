"""The FastAPI application of `/api` and the live sockets, and its OpenAPI document.

The only place that turns exceptions into HTTP responses. FastAPI and the models take a third of a daemon's start, so
only `app.LazyApi` imports this module, when the first request needs it.
"""

from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from handrail import __version__
from handrail.agents.acp.agent_errors import AgentError
from handrail.clients.transcripts.transcripts import UnknownTranscript
from handrail.errors import Conflict, Unwritable
from handrail.gate.rules.rule_builder import BadRule
from handrail.gate.rules.rules import UnknownRule
from handrail.gate.tool import Refusal, UnknownUndo
from handrail.server.api import (
    agents,
    approvals,
    calls,
    clients,
    devices,
    editors,
    keys,
    logins,
    operations,
    pause,
    policy_changes,
    prompts,
    push,
    rules,
    search,
    secrets,
    servers,
    settings,
    sign_in,
    state,
    terminal_output,
    terminals,
    threads,
    transcripts,
    undo,
)
from handrail.server.api.call_models import Problem
from handrail.server.api.prompts import BadImage
from handrail.server.api.terminal_models import SOCKET_SHAPES
from handrail.server.api.thread_models import FLOW_SHAPES
from handrail.server.context import ServerContext
from handrail.server.editor_pairings import UnknownEditor
from handrail.server.live import event_stream, terminal_attach, thread_stream
from handrail.store.export import NotImportable
from handrail.store.search_query import BadQuery
from handrail.terminal.keeper_client import KeeperError

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 422, 502, 503)
}
_ROUTES = (
    state.routes,
    calls.table_routes,
    calls.routes,
    operations.routes,
    approvals.routes,
    rules.routes,
    rules.folder_routes,
    policy_changes.routes,
    keys.routes,
    secrets.routes,
    logins.routes,
    pause.routes,
    settings.routes,
    undo.routes,
    terminals.routes,
    terminals.sharing_routes,
    terminal_output.routes,
    sign_in.routes,
    sign_in.list_routes,
    sign_in.credential_routes,
    threads.export_routes,
    threads.routes,
    threads.edit_routes,
    transcripts.routes,
    prompts.routes,
    agents.routes,
    agents.session_routes,
    clients.routes,
    servers.routes,
    servers.entry_routes,
    devices.routes,
    push.routes,
    editors.routes,
    search.routes,
    prompts.image_routes,
    event_stream.sockets,
    terminal_attach.sockets,
    thread_stream.sockets,
)


def build_api(context: ServerContext) -> FastAPI:
    """Build the FastAPI application of `/api` and the live sockets, without the guard."""
    app = FastAPI(
        title="Handrail",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
    )
    for routes in _ROUTES:
        app.include_router(routes(context), prefix="/api")
    app.openapi = partial(_build_openapi, app)
    app.add_exception_handler(Unwritable, _unavailable)
    app.add_exception_handler(Conflict, _conflict)
    app.add_exception_handler(BadRule, _unprocessable)
    app.add_exception_handler(BadQuery, _unprocessable)
    app.add_exception_handler(Refusal, _unprocessable)
    app.add_exception_handler(UnknownRule, _not_found)
    app.add_exception_handler(UnknownUndo, _not_found)
    app.add_exception_handler(UnknownTranscript, _not_found)
    app.add_exception_handler(UnknownEditor, _not_found)
    app.add_exception_handler(LookupError, _lookup_failed)
    app.add_exception_handler(AgentError, _bad_gateway)
    app.add_exception_handler(BadImage, _unprocessable)
    app.add_exception_handler(NotImportable, _unprocessable)
    app.add_exception_handler(KeeperError, _unavailable)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


def _build_openapi(app: FastAPI) -> dict[str, Any]:
    """Build the OpenAPI document. Adds the socket messages, which FastAPI does not describe."""
    document = FastAPI.openapi(app)
    shapes: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = [
        (shape, "serialization", TypeAdapter(shape)) for shape in (*SOCKET_SHAPES, *FLOW_SHAPES)
    ]
    _, schemas = TypeAdapter.json_schemas(shapes, ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= schemas["$defs"]
    return document


async def _unavailable(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 503)


async def _conflict(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 409)


async def _unprocessable(_request: Request, problem: Exception) -> JSONResponse:
    """The request is well-formed, but its content is not valid."""
    return JSONResponse({"detail": str(problem)}, 422)


async def _not_found(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 404)


async def _lookup_failed(_request: Request, problem: Exception) -> JSONResponse:
    """The object disappeared after the route looked it up. Subclasses such as KeyError are bugs and are raised again."""
    if type(problem) is not LookupError:
        raise problem
    return JSONResponse({"detail": str(problem)}, 404)


async def _bad_gateway(_request: Request, problem: Exception) -> JSONResponse:
    """An agent's program failed."""
    return JSONResponse({"detail": str(problem)}, 502)


async def _invalid(_request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    errors = problem.errors()[:5]
    if all(error["type"] == "value_error" for error in errors):
        # Our own words, for a person: a form or the command line shows them.
        words = "; ".join(error["msg"].removeprefix("Value error, ") for error in errors)
        return JSONResponse({"detail": f"{words[:1].upper()}{words[1:]}."}, 422)
    places = "; ".join(
        f"{'.'.join(str(part) for part in error['loc'])}: {error['msg'].lower()}" for error in errors
    )
    return JSONResponse(
        {"detail": f"The request does not fit: {places}. /api/openapi.json says what does."}, 422
    )
