"""Configuration: what a person wrote in config.toml, checked, and where each value came from.

Owns the names, defaults and limits of every setting. It does not know what the settings are used for.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$")]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerSection(Section):
    port: Annotated[int, Field(ge=1, le=65_535)] = 7433
    """On loopback; when it is taken, a free one is used."""


class TerminalSection(Section):
    shell: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    """Of new terminals; the person's own unless set."""
    max_bytes: Annotated[int, Field(ge=65_536, le=1 << 40)] = 64 * 1024 * 1024
    """Of one terminal's output kept on disk; the oldest is dropped first."""
    max_lines: Annotated[int, Field(ge=1_000, le=1 << 40)] = 1_000_000
    """Of the same; whichever limit is met first holds."""
    keep_days: Annotated[float, Field(gt=0, le=36_500)] = 30.0
    """How long the output of an ended terminal is kept."""
    keep_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 50)] = 4 * 1024 * 1024 * 1024
    """Of all ended terminals together; the oldest go first."""


class CommandSection(Section):
    wait_seconds: Annotated[float, Field(ge=1, le=3600)] = 45.0
    """After which an unfinished call is handed back."""
    stop_grace: Annotated[float, Field(ge=0, le=60)] = 2.0
    """Between asking processes to end and killing them."""
    env_pass: tuple[Name, ...] = ()
    """Variables of the daemon's environment that children also get."""


class Config(Section):
    """Everything that can be set."""

    human_in_the_loop: bool = True
    """False allows low risk without asking. So far that changes nothing: whatever is of low risk passes anyway."""
    default_policy: Literal["ask", "allow", "deny"] = "ask"
    server: ServerSection = ServerSection()
    terminal: TerminalSection = TerminalSection()
    command: CommandSection = CommandSection()


class BadConfig(Exception):
    """The file says something that cannot be; the sentence has the file, the line and the fix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and where it came from."""

    name: str
    value: Any
    origin: str


def load(path: Path) -> Config:
    """The configuration in a file; the defaults where there is none. Raises BadConfig."""
    text = _read(path)
    try:
        return Config.model_validate(_parse(path, text))
    except ValidationError as error:
        raise BadConfig(_sentence(path, text, error)) from None


def settings(path: Path) -> list[Setting]:
    """Every value with its origin, in the order of the file's documentation."""
    config, text = load(path), _read(path)
    given = _flat(_parse(path, text))
    found = _flat(config.model_dump(mode="json"))
    return [
        Setting(
            name=name,
            value=value,
            origin=f"{path}:{_line(text, name.split('.'))}" if name in given else "default",
        )
        for name, value in found.items()
    ]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(
            f"{path} cannot be read: {error}. Make it a readable text file, or remove it."
        ) from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{path} is not valid TOML: {error}. Mend that line, or remove it.") from None


def _sentence(path: Path, text: str, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = [str(part) for part in first["loc"]]
    name, line = ".".join(where), _line(text, where)
    match first["type"]:
        case "extra_forbidden":
            known = ", ".join(_flat(Config().model_dump()))
            fix = f"there is no setting `{name}`. Known: {known}"
        case _:
            fix = f"`{name}` is {first['input']!r}: {first['msg'][:1].lower()}{first['msg'][1:]}"
    return f"{path}, line {line}: {fix}. Mend or remove that line; `handrail config` shows what is in force."


def _line(text: str, where: list[str]) -> int:
    """The line of a setting: the key within its table, or the table itself."""
    table, found = "", 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[+\s*([^\]\s]+)\s*\]+", line):
            table = header[1]
            found = number if table == where[0] else found
        elif (key := re.match(r"\s*([A-Za-z0-9_.\"-]+)\s*=", line)) is not None:
            path = [*table.split("."), key[1]] if table else key[1].split(".")
            if path == where[: len(path)]:
                return number
    return found


def _flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _flat(cast("dict[str, Any]", value), f"{above}{name}.")
        else:
            found[f"{above}{name}"] = value
    return found
