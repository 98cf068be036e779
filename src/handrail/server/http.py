"""The routes of `/api` as one application: people's programs, and the page among them.

Owns how exceptions become HTTP answers, in one place. It does not judge who comes in (guard.py), and what each
route does stands in routes/.
"""

from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from handrail import __version__
from handrail.agents.failure import AgentError
from handrail.errors import Conflict, Unwritable
from handrail.gate.rules.rule_builder import BadRule
from handrail.gate.rules.rules import NoRule
from handrail.gate.tool import Refusal, UnknownUndo
from handrail.server.pictures import NoPicture
from handrail.server.rooms import Rooms
from handrail.server.routes import (
    agents,
    approvals,
    calls,
    credentials,
    folders,
    images,
    keeping,
    operations,
    output,
    prompts,
    rules,
    search,
    sharing,
    sign_in,
    taken,
    terminals,
    threads,
    undo,
    watching,
)
from handrail.server.terminal_wire import SOCKET_SHAPES
from handrail.server.thread_wire import FLOW_SHAPES
from handrail.server.wire import Problem
from handrail.store.export.shape import NotImportable
from handrail.terminal.keeper_client import KeeperError

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 409, 422, 502, 503)
}
_ROUTES = (
    watching,
    calls,
    operations,
    approvals,
    rules,
    folders,
    undo,
    terminals,
    sharing,
    output,
    sign_in,
    credentials,
    taken,
    threads,
    keeping,
    prompts,
    agents,
    search,
    images,
)


def application(rooms: Rooms) -> FastAPI:
    """The routes as an ASGI application, without its guard."""
    app = FastAPI(
        title="Handrail",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses=_PROBLEMS,
    )
    for module in _ROUTES:
        app.include_router(module.routes(rooms), prefix="/api")
    app.openapi = partial(_described, app)
    app.add_exception_handler(Unwritable, _unavailable)
    app.add_exception_handler(Conflict, _conflict)
    app.add_exception_handler(BadRule, _unfit)
    app.add_exception_handler(Refusal, _unfit)
    app.add_exception_handler(NoRule, _missing)
    app.add_exception_handler(UnknownUndo, _missing)
    app.add_exception_handler(LookupError, _gone)
    app.add_exception_handler(AgentError, _failed)
    app.add_exception_handler(NoPicture, _unfit)
    app.add_exception_handler(NotImportable, _unfit)
    app.add_exception_handler(KeeperError, _unavailable)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """The description, with what sockets say: FastAPI knows only routes."""
    described = FastAPI.openapi(app)
    shapes: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = [
        (shape, "serialization", TypeAdapter(shape)) for shape in (*SOCKET_SHAPES, *FLOW_SHAPES)
    ]
    _, said = TypeAdapter.json_schemas(shapes, ref_template="#/components/schemas/{model}")
    described["components"]["schemas"] |= said["$defs"]
    return described


async def _unavailable(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 503)


async def _conflict(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 409)


async def _unfit(_request: Request, problem: Exception) -> JSONResponse:
    """What was sent has the right shape, and cannot be all the same."""
    return JSONResponse({"detail": str(problem)}, 422)


async def _missing(_request: Request, problem: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(problem)}, 404)


async def _gone(_request: Request, problem: Exception) -> JSONResponse:
    """It was there when the route looked. Only what says so itself: a key that is missing is a fault of ours."""
    if type(problem) is not LookupError:
        raise problem
    return JSONResponse({"detail": str(problem)}, 404)


async def _failed(_request: Request, problem: Exception) -> JSONResponse:
    """Somebody else's program could not do it."""
    return JSONResponse({"detail": str(problem)}, 502)


async def _invalid(_request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, RequestValidationError)
    told = "; ".join(
        f"{'.'.join(str(part) for part in error['loc'])}: {error['msg'].lower()}"
        for error in problem.errors()[:5]
    )
    return JSONResponse(
        {"detail": f"The request does not fit: {told}. /api/openapi.json says what does."}, 422
    )
