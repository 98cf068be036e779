"""acpx, a client of the Agent Client Protocol from the npm registry, driving `handrail agent`.

Owns the client's process and what it prints. Knows nothing of how our agent works: it is a command on the path.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from acp import schema
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.text import TextReceiveStream
from tests.real_agents.hosting import SLOW
from tests.real_agents.install import MODULES, node
from tests.support import processes
from tests.support.daemon_home import Home, running_daemon
from tests.support.model_server.server import ModelServer, model_server
from tests.support.person_client import Person, person_of
from tests.support.thread_client import GRACE

Json = dict[str, Any]

AGENT = "handrail agent"
KEY = "sk-of-whoever-runs-acpx"
HANDRAIL = "import sys\n\nfrom handrail.__main__ import main\n\nsys.exit(main())\n"
"""As an installer writes it."""
ANSWERS: dict[str, Any] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
    "session/request_permission": schema.RequestPermissionResponse,
}
"""What the protocol has as the answer to each request that is made here."""


@dataclass(slots=True)
class Run:
    """One command of acpx, while it runs and afterwards."""

    process: Process
    out: str = ""
    err: str = ""
    code: int | None = None
    """Once it has ended."""
    _heard: anyio.Event = field(default_factory=anyio.Event)

    @property
    def messages(self) -> list[Json]:
        """What went to and from the agent, of `--format json`; every line is one."""
        return [json.loads(line) for line in self.out.splitlines(keepends=True) if line.endswith("\n")]

    @property
    def updates(self) -> list[Json]:
        return [each["params"]["update"] for each in self.messages if each.get("method") == "session/update"]

    def of(self, kind: str) -> list[Json]:
        return [each for each in self.updates if each["sessionUpdate"] == kind]

    @property
    def said(self) -> str:
        return "".join(each["content"]["text"] for each in self.of("agent_message_chunk"))

    @property
    def stop(self) -> str | None:
        """Why the operation ended, by the answer to its prompt."""
        stops = [each["result"].get("stopReason") for each in self.messages if "result" in each]
        return next((stop for stop in stops if stop), None)

    async def hears(self, holds: Callable[["Run"], object]) -> None:
        """Wait until this holds of what was printed."""
        with anyio.fail_after(SLOW):
            while not holds(self):
                assert self.process.returncode is None, f"it has ended, with {self.out}{self.err}"
                await self._heard.wait()

    async def listen(self, stream: ByteReceiveStream, name: str) -> None:
        async for text in TextReceiveStream(stream):
            setattr(self, name, getattr(self, name) + text)
            self._ring()
        await self.process.wait()
        self._ring()

    def _ring(self) -> None:
        bell, self._heard = self._heard, anyio.Event()
        bell.set()

    def is_well_formed(self) -> None:
        """Every line is a message of the protocol, as its official SDK has it, and every request is answered once."""
        asked, answered = Counter[object](), Counter[object]()
        waiting: dict[object, list[str]] = {}
        for each in self.messages:
            assert each["jsonrpc"] == "2.0"
            match each:
                case {"method": "session/update", "params": params}:
                    schema.SessionNotification.model_validate(params)
                case {"method": method, "id": id, "params": params}:
                    asked[id] += 1
                    waiting.setdefault(id, []).append(method)
                    if method == "session/request_permission":
                        schema.RequestPermissionRequest.model_validate(params)
                case {"id": id, "result": result}:
                    answered[id] += 1
                    ANSWERS[waiting[id].pop()].model_validate(result)
                case _:
                    raise AssertionError(f"not of the protocol: {each}")
        assert asked == answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """Our agent on the path of acpx, a daemon and a model beside it."""

    home: Home
    person: Person
    model: ModelServer
    folder: Path
    """Everything that is started here has this in its command, or is at work in it."""

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def program(self) -> Path:
        """Where `handrail` lies."""
        return self.folder / "bin" / "handrail"

    @property
    def way(self) -> Mapping[str, str]:
        """To the model."""
        return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": self.model.url}

    @asynccontextmanager
    async def running(self, *words: str, env: Mapping[str, str] | None = None) -> AsyncGenerator[Run]:
        """A command of acpx; it has ended by itself when the `with` is left."""
        command = [str(node()), str(MODULES / "acpx" / "dist" / "cli.js"), "--agent", AGENT, *words]
        path = f"{self.program.parent}{os.pathsep}{os.environ['PATH']}"
        around = {**self.home.environment, **(self.way if env is None else env), "PATH": path}
        process = await anyio.open_process(
            command, cwd=self.workspace, env=around, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        run = Run(process)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            with anyio.fail_after(2 * SLOW):
                async with anyio.create_task_group() as group:
                    group.start_soon(run.listen, process.stdout, "out")
                    group.start_soon(run.listen, process.stderr, "err")
                    yield run
                    run.code = await process.wait()
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await process.wait()
                await process.aclose()

    async def acpx(self, *words: str, env: Mapping[str, str] | None = None) -> Run:
        """A command of acpx, to its end."""
        async with self.running(*words, env=env) as run:
            pass
        return run

    def left(self, since: int) -> list[str]:
        """What was started since then and is not gone."""
        return [
            str(each)
            for each in processes.started_since(since, frozenset(), (self.folder, self.home.places.state))
        ]


@contextmanager
def driving() -> Generator[Driven]:
    with (
        tempfile.TemporaryDirectory(prefix="hr-acpx-") as made,
        model_server() as model,
        running_daemon(GRACE) as home,
    ):
        folder = Path(os.path.realpath(made))
        (folder / "work").mkdir()
        (folder / "bin").mkdir()
        driven = Driven(home=home, person=person_of(home), model=model, folder=folder)
        driven.program.write_text(f"#!{sys.executable} -P\n{HANDRAIL}")
        driven.program.chmod(0o755)
        yield driven
