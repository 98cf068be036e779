"""Opening the transport to an MCP server: its program or its address, with its environment, headers and secrets."""

import os
import shutil
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from handrail.config import LOOPBACK_HOSTS, McpServerSection
from handrail.gate.tool import Refusal
from handrail.terminal.pipe_process import PipeProcess
from handrail.terminal.terminals import Terminals
from handrail.upstream.jsonrpc_connection import Line
from handrail.upstream.secret_store import BadSecret, SecretStore, fill_references, find_references

TYPE_CHECKING = False

if TYPE_CHECKING:
    import httpx2

    from handrail.upstream.http_transport import HttpTransport
    from handrail.upstream.oauth_sign_ins import OAuthSignIns


class Transport(Line, Protocol):
    """A started program, or a session over HTTP."""

    @property
    def over(self) -> anyio.Event:
        """Set with `why`."""
        ...

    @property
    def stderr_lines(self) -> tuple[str, ...]: ...
    async def run(self) -> None: ...
    async def stop(self) -> None: ...
    def close(self) -> None: ...


class Transports:
    """Opens the transport to a server."""

    def __init__(
        self,
        terminals: Terminals,
        environment: Callable[[Sequence[str]], Mapping[str, str]],
        secrets: SecretStore,
        sections: Mapping[str, McpServerSection],
        group: Callable[[], TaskGroup | None],
        on_sign_in: Callable[[], None],
    ) -> None:
        """Sign-ins to `sections` go on in `group`, and end with `on_sign_in`."""
        self._terminals, self._environment, self._secrets = terminals, environment, secrets
        self._sections, self._group, self._on_sign_in = sections, group, on_sign_in
        self._sign_ins: OAuthSignIns | None = None
        self._tls: ssl.SSLContext | None = None

    @property
    def sign_ins(self) -> "OAuthSignIns":
        if self._sign_ins is None:
            # The HTTP client takes 5 MB, which only daemons with such a server need.
            from handrail.upstream.oauth_sign_ins import OAuthSignIns  # noqa: PLC0415

            self._sign_ins = OAuthSignIns(
                self._sections, self._secrets, self.connect, self._group, self._on_sign_in
            )
        return self._sign_ins

    async def open(self, section: McpServerSection, workspace: str | None) -> "PipeProcess | HttpTransport":
        """Raises Refusal or KeeperError."""
        secrets = await self._read_secrets(section)
        if section.url:
            return await self._open_http(section, secrets)
        return await self._start(section, secrets, workspace)

    async def _start(
        self, section: McpServerSection, secrets: Mapping[str, str], workspace: str | None
    ) -> PipeProcess:
        env = {
            **self._environment(section.env_pass),
            **{name: secrets[name] for name in section.secrets},
            **{name: fill_references(value, secrets) for name, value in section.env.items()},
        }
        home = env.get("HOME") or "/"
        folder = str(Path(home, section.cwd or workspace or home))
        command = find_command(section.command, env)
        return await PipeProcess.start(self._terminals, section.name, command, folder, env)

    async def _open_http(self, section: McpServerSection, secrets: Mapping[str, str]) -> "HttpTransport":
        from handrail.upstream.http_transport import HttpTransport, Unauthorized  # noqa: PLC0415

        headers = {name: fill_references(value, secrets) for name, value in section.headers.items()}

        has_key = "authorization" in map(str.lower, headers)

        async def authorize(challenge: str, refused: str) -> Mapping[str, str]:
            if has_key and challenge:
                raise Unauthorized(
                    f"{section.name} refuses access (HTTP 401): check the `headers` of its entry."
                )
            if has_key:
                return headers
            return {**headers, **await self.sign_ins.headers(section.name, challenge, refused)}

        return HttpTransport(section.name, section.url, authorize, await self.connect(section.url))

    async def connect(self, url: str) -> "httpx2.AsyncClient":
        """An HTTP client for a server."""
        from handrail.upstream.http_transport import build_client  # noqa: PLC0415

        if self._tls is None:
            self._tls = await to_thread.run_sync(ssl.create_default_context)
        return build_client(self._tls, is_local=urlsplit(url).hostname in LOOPBACK_HOSTS)

    async def _read_secrets(self, section: McpServerSection) -> dict[str, str]:
        """The values of a server's secrets. Raises Refusal."""
        names = list_secrets(section)
        if not names:
            return {}
        try:
            found = await to_thread.run_sync(lambda: self._secrets.get(*names), abandon_on_cancel=True)
        except BadSecret as problem:
            raise Refusal(str(problem)) from None
        missing = [name for name in names if name not in found]
        if missing:
            raise Refusal(
                f"{section.name} needs the secret {' and '.join(missing)}, which is not stored or cannot be read. "
                f"A person stores it with `handrail servers secret set {missing[0]}`, or on Handrail's page."
            )
        return found


def list_secrets(section: McpServerSection) -> list[str]:
    """The names of the secrets that a server needs."""
    return sorted(
        {
            *section.secrets,
            *find_references([*section.env.values(), *section.headers.values(), section.oauth.client_secret]),
        }
    )


def find_command(command: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """The command with an absolute program: a file of the project must not take its place. Raises Refusal."""
    program, *arguments = command
    if "/" in program:
        return str(Path(env.get("HOME") or "/", Path(program).expanduser())), *arguments
    folders = [folder for folder in env.get("PATH", os.defpath).split(os.pathsep) if folder.startswith("/")]
    found = shutil.which(program, path=os.pathsep.join(folders) or os.defpath)
    if found is None:
        raise Refusal(
            f"There is no program {program} on the PATH it gets. Install it, or give its full path."
        )
    return found, *arguments
