"""The daemon's usual command line, which is parsed without the command-line package."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import anyio.to_thread
import pytest

from handrail.daemon.start import ARGUMENTS, end_worker_threads, parse_port


@pytest.mark.parametrize(
    ("options", "port"),
    [
        ((), 0),
        (("--port", "8000"), 8000),
        (("--port", "65535"), 65535),
    ],
)
def test_the_usual_command_line_is_parsed(options: tuple[str, ...], port: int) -> None:
    assert parse_port((*ARGUMENTS, *options)) == port


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("up",),
        ("up", "--foreground"),
        ("up", "--no-open", "--foreground"),
        (*ARGUMENTS, "--help"),
        (*ARGUMENTS, "--port"),
        (*ARGUMENTS, "--port", "0"),
        (*ARGUMENTS, "--port", "65536"),
        (*ARGUMENTS, "--port", "9" * 5000),
        (*ARGUMENTS, "--port", "-1"),
        (*ARGUMENTS, "--port", "²"),
        (*ARGUMENTS, "--port", "80", "--port", "81"),
    ],
)
def test_any_other_one_is_left_to_the_command_line(arguments: tuple[str, ...]) -> None:
    assert parse_port(arguments) is None


LOADED = {
    *(
        "annotated_types",
        "anyio",
        "click",
        "h11",
        "handrail",
        "pydantic",
        "pydantic_core",
        "python_multipart",
    ),
    *(
        "sniffio",
        "starlette",
        "tree_sitter",
        "tree_sitter_bash",
        "typing_extensions",
        "typing_inspection",
        "uvicorn",
    ),
}
"""The packages of a start. Others, such as FastAPI and the SDKs of MCP and ACP, are imported at their first use: each of
them would delay the answer to clients that wait after a crash."""


def test_a_start_imports_no_other_packages() -> None:
    program = "import sys, handrail.daemon.daemon; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {program}"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    packages = {name for name in done.stdout.split() if not name.startswith("_")}
    assert packages - sys.stdlib_module_names <= LOADED


def test_a_worker_thread_that_the_event_loop_forgot_does_not_keep_the_process() -> None:
    async def forget_worker() -> Any:
        worker: Any = await anyio.to_thread.run_sync(threading.current_thread)
        asyncio.tasks.current_task().remove_done_callback(worker.stop)  # pyright: ignore[reportOptionalMemberAccess]
        return worker

    forgotten = anyio.run(forget_worker)
    assert forgotten.is_alive()
    end_worker_threads()
    forgotten.join(30)
    assert not forgotten.is_alive()
