"""Routes of settings: the values of the configuration file, without secrets, and their changes; stopping everything."""

import types
from collections.abc import Awaitable, Iterator
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import anyio.to_thread
from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

from handrail.config import BadConfig, Config
from handrail.flat_settings import is_secret_name, mask_secrets, read_descriptions, settings
from handrail.gate import person_actions
from handrail.server.api.models import Wire
from handrail.server.api.terminals import close_all
from handrail.server.context import ServerContext, actor_of
from handrail.server.settings_file import BadSetting, SettingsFile, is_live

T = TypeVar("T")
Kind = Literal["switch", "choice", "number", "text", "names", "other"]


class SettingField(Wire):
    """How a value can be edited."""

    kind: Kind
    """`names` is a list of texts. `other` is only shown."""
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    optional: bool = False
    """It may be unset."""
    secret: bool = False
    """Its value is not shown."""
    about: str = ""


class SettingView(Wire):
    """One value of the configuration."""

    name: str
    value: Any
    """Secrets are masked."""
    default: bool
    """It is not in the file."""
    field: SettingField
    restart: bool
    """A change is in force after `handrail restart`."""
    pending: bool
    """It was changed, and waits for that restart."""


class SettingsView(Wire):
    """The configuration file as it is now."""

    path: str
    problem: str
    """Why the file cannot be read; empty if it can."""
    values: list[SettingView]


class SettingsBody(Wire):
    """New values by name; null removes a value, so that its default holds."""

    values: Annotated[
        dict[str, bool | int | float | str | list[str] | None], Field(min_length=1, max_length=50)
    ]


class AgentEntryBody(Wire):
    """A new entry of `[[agents]]`."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    title: Annotated[str, Field(max_length=100)] = ""
    command: Annotated[list[str], Field(min_length=1, max_length=100)]
    env_pass: Annotated[tuple[str, ...], Field(max_length=50)] = ()
    """Names of variables in the daemon's environment that the agent also gets."""


class StopReceipt(Wire):
    """The processes that were stopped."""

    operations: int
    """Prompts that agents worked on."""
    calls: int
    """Open calls: running, or waiting for an answer."""
    terminals: int
    """Commands and shells of agents that ran without an open call."""
    beyond: int
    """Calls that clients run themselves: Handrail no longer follows them, and cannot end their processes."""


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/settings")
    async def show_settings() -> SettingsView:
        return await anyio.to_thread.run_sync(_read_settings, context.settings_file)

    @router.patch("/settings")
    async def change_settings(body: SettingsBody, request: Request) -> SettingsView:
        """Change values of config.toml. What can be taken up is in force at once, the rest after a restart."""
        fields = read_fields()
        for name in body.values:
            if name not in fields or fields[name].kind == "other":
                raise HTTPException(422, f"There is no setting {name} that can be changed here.")
        await _apply(context.settings_file.set_values(body.values, actor_of(request)))
        return await anyio.to_thread.run_sync(_read_settings, context.settings_file)

    @router.post("/settings/agents")
    async def add_agent(body: AgentEntryBody, request: Request) -> SettingsView:
        """Add an agent of your own. It can be used after a restart."""
        entry = {name: value for name, value in body.model_dump(mode="json").items() if value}
        await _apply(context.settings_file.add_agent(entry, actor_of(request)))
        return await anyio.to_thread.run_sync(_read_settings, context.settings_file)

    @router.delete("/settings/agents/{name}")
    async def remove_agent(name: str, request: Request) -> SettingsView:
        if not await _apply(context.settings_file.remove_agent(name, actor_of(request))):
            raise HTTPException(404, f"There is no agent {name} in config.toml.")
        return await anyio.to_thread.run_sync(_read_settings, context.settings_file)

    @router.post("/stop")
    async def stop_everything(request: Request) -> StopReceipt:
        by, gate = actor_of(request), context.gate
        still_open = list(gate.open.values())
        operations = sum(operation.cancel(by) for operation in list(gate.operations.values()))
        beyond = [call for call in still_open if call.caller.door == "hook" and call.status == "running"]
        for call in still_open:
            person_actions.cancel(gate, call, by)
        ending = {call.terminal for call in still_open}
        agents = [live for live in context.terminals.live.values() if live.note.is_agents]
        left = [live.id for live in agents if live.exit is None and live.id not in ending]
        closed = await close_all(context, left, str(by))
        return StopReceipt(
            operations=operations, calls=len(still_open), terminals=len(closed), beyond=len(beyond)
        )

    return router


async def _apply(change: Awaitable[T]) -> T:
    try:
        return await change
    except BadSetting as problem:
        raise HTTPException(422, str(problem)) from None


def _read_settings(file: SettingsFile) -> SettingsView:
    try:
        values = [mask_secrets(each) for each in settings(file.path)]
    except BadConfig as problem:
        return SettingsView(path=str(file.path), problem=str(problem), values=[])
    fields, pending = read_fields(), file.pending
    shown = [
        SettingView(
            name=each.name,
            value=each.value,
            default=each.origin == "default",
            field=fields.get(each.name) or SettingField(kind="other"),
            restart=not is_live(each.name),
            pending=each.name in pending,
        )
        for each in values
    ]
    return SettingsView(path=str(file.path), problem="", values=shown)


@lru_cache(1)
def read_fields() -> dict[str, SettingField]:
    """How each setting can be edited, by name."""
    return dict(_list_fields(Config))


def _list_fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, SettingField]]:
    """The fields of a section and of the sections in it, by dotted name."""
    about = read_descriptions(model)
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _list_fields(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _describe_field(f"{prefix}{name}", field, about.get(name, ""))


def _describe_field(name: str, field: FieldInfo, about: str) -> SettingField:
    base, optional = _unwrap(field.annotation)
    bounds = {
        each: getattr(rule, each)
        for rule in field.metadata
        for each in ("ge", "gt", "le")
        if hasattr(rule, each)
    }
    return SettingField(
        kind=_kind_of(base),
        choices=get_args(base) if get_origin(base) is Literal else (),
        least=bounds.get("ge", bounds.get("gt")),
        most=bounds.get("le"),
        optional=optional,
        secret=is_secret_name(name),
        about=about,
    )


def _unwrap(annotation: Any) -> tuple[Any, bool]:
    """The type without `| None`, and whether it had that."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    kinds = [each for each in get_args(annotation) if each is not types.NoneType]
    return kinds[0], len(kinds) < len(get_args(annotation))


def _kind_of(base: Any) -> Kind:
    if get_origin(base) is Literal:
        return "choice"
    if get_origin(base) is tuple:
        return "names" if get_args(get_args(base)[0])[:1] == (str,) else "other"
    kinds: dict[Any, Kind] = {bool: "switch", int: "number", float: "number", str: "text"}
    return kinds.get(base, "other")
