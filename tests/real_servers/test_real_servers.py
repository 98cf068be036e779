"""Real MCP servers, used directly and through Handrail by the official client: what works directly works through us."""

import json
import os
import re
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
from tests.real_agents.install import PYTHON_SETS, SETS, node
from tests.support.daemon_home import BOUND, Home, eventually, running_daemon
from tests.support.mcp_client import Generation, stdio
from tests.support.person_client import person_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

Json = dict[str, Any]
Answers = dict[str, Any]
"""What came back, by what was asked."""
DATE = "2026-11-19T12:00:00+00:00"
ENV = {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
LOG_LEVEL = "debug"


def commands(folder: Path) -> dict[str, list[str]]:
    """The servers; two of them work in this folder."""
    packages = SETS["servers"].modules / "@modelcontextprotocol"
    return {
        "all": [str(node()), str(packages / "server-everything" / "dist" / "index.js"), "stdio"],
        "fs": [str(node()), str(packages / "server-filesystem" / "dist" / "index.js"), str(folder)],
        "git": [str(PYTHON_SETS["git"].installed / "bin" / "mcp-server-git")],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Home]:
    env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in ENV.items())
    entries = [
        f'[[servers]]\nname = "{name}"\ncommand = {json.dumps(command)}\nenv = {{ {env} }}\nsampling = true\n'
        f'[[rules]]\neffect = "allow"\nserver = "{name}"\n'
        for name, command in commands(folder).items()
    ]
    with running_daemon("".join(entries)) as home:
        yield home


@pytest.fixture(scope="module")
async def trusted(served: Home, folder: Path) -> Path:
    await person_of(served).post("folders/trust", {"folder": str(folder), "config": None})
    return folder


@dataclass(slots=True)
class Counterpart:
    """The client's side of the protocol: answers to questions, and the notifications it got."""

    root: Path
    asked: list[str] = field(default_factory=list[str])
    heard: list[str] = field(default_factory=list[str])

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept")
        return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})

    async def sample(self, context: Any, params: Any) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="Hello from the model")
        return types.CreateMessageResult(
            role="assistant", content=text, model="scripted", stop_reason="endTurn"
        )

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=self.root.as_uri(), name="Some")])  # pyright: ignore[reportArgumentType]

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.heard.append(f"log {str(params.data).split(' from ')[0]}")

    async def hear(self, message: Any) -> None:
        if method := getattr(message, "method", ""):
            self.heard.append(method)


@dataclass(slots=True)
class Used:
    """A server in use, directly or through Handrail."""

    client: Client
    prefix: str
    who: Counterpart

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(f"{self.prefix}{tool}", arguments)
        return plain(result)

    async def refused(self, method: Callable[[], Awaitable[Any]]) -> int:
        with pytest.raises(MCPError) as error:
            await method()
        return error.value.code


@asynccontextmanager
async def using(
    server: StdioServerParameters, prefix: str, root: Path, generation: Generation = "legacy"
) -> AsyncGenerator[Used]:
    who = Counterpart(root)
    with anyio.fail_after(BOUND):
        async with Client(
            server,
            mode=generation,
            elicitation_callback=who.elicit,
            sampling_callback=who.sample,
            list_roots_callback=who.roots,
            logging_callback=who.log,
            message_handler=who.hear,
            cache=None,
        ) as client:
            yield Used(client, prefix, who)


def plain(model: BaseModel) -> Json:
    """As on the wire, without what differs between two runs."""
    shown = model.model_dump_json(by_alias=True, exclude_none=True)
    shown = re.sub(r"\d{1,2}:\d\d:\d\d\s?[AP]M", "TIME", shown)
    shown = re.sub(r'("blob":"[^"]{48})[^"]*"', r'\1"', shown)  # one has the time at its end
    found: Json = json.loads(shown)
    for name in ("_meta", "resultType", "ttlMs", "cacheScope"):
        found.pop(name, None)
    return found


async def compare(
    served: Home,
    folder: Path,
    name: str,
    use: Callable[[Used], Awaitable[Answers]],
    generations: Sequence[Generation] = ("legacy", "2026-07-28"),
    prepare: Callable[[], object] = list[str],
) -> None:
    """Do the same with the server directly and, in each generation, through Handrail. A difference fails with its name."""
    program, *arguments = commands(folder)[name]
    environment = {**ENV, "HOME": served.environment["HOME"]}
    prepare()
    direct = StdioServerParameters(command=program, args=arguments, env=environment, cwd=folder)
    async with using(direct, "", folder) as used:
        expected = await use(used)
    for generation in generations:
        prepare()
        async with using(stdio(served, folder), f"{name}__", folder, generation) as used:
            found = await use(used)
        assert found.keys() == expected.keys()
        assert {key: found[key] for key in found if found[key] != expected[key]} == {
            key: expected[key] for key in found if found[key] != expected[key]
        }, generation


async def list_tools(used: Used) -> Json:
    """Every tool as listed, by its own name. Our output schema has an alternative more."""
    listed = (await used.client.list_tools()).tools
    own = [tool for tool in listed if tool.name.startswith(used.prefix)]
    fields = ("title", "description", "input_schema", "annotations")
    return {
        tool.name.removeprefix(used.prefix): [
            *(getattr(tool, name) for name in fields),
            tool.output_schema is None,
        ]
        for tool in own
        if used.prefix or "__" not in tool.name
    }


async def use_everything(used: Used) -> Answers:
    """Every feature of the reference server, but the tool that it offers as a task only."""
    client, steps = used.client, list[tuple[float, float | None, str | None]]()

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    link = "https://good.example/sign-in"
    text = {"resourceType": "Text", "resourceId": 1}
    answers: Answers = {
        "tools": await list_tools(used),
        "echo": await used.call("echo", message="hi"),
        "wrong arguments": await used.call("echo", text="hi"),
        "sum": await used.call("get-sum", a=1, b=2),
        "annotated": await used.call("get-annotated-message", messageType="error", includeImage=True),
        "links": await used.call("get-resource-links", count=3),
        "reference": await used.call("get-resource-reference", **text),
        "structured": await used.call("get-structured-content", location="New York"),
        "image": await used.call("get-tiny-image"),
        "elicited": await used.call("trigger-elicitation-request"),
        "link": await used.call("trigger-url-elicitation", url=link, message="Go", elicitationId="e1"),
        "sampled": await used.call("trigger-sampling-request", prompt="Hi", maxTokens=5),
        "roots": await used.call("get-roots-list"),
    }
    refused = await used.refused(
        lambda: used.call("trigger-url-elicitation", url=link, elicitationId="e2", errorPath=True)
    )
    operation = f"{used.prefix}trigger-long-running-operation"
    done = await client.call_tool(operation, {"duration": 0.2, "steps": 4}, progress_callback=step)
    assert isinstance(done, types.CallToolResult)
    answers |= {
        "link required": refused,
        "long": plain(done),
        "progress": steps,
        "asked": [message.split(": ", 1)[-1] for message in used.who.asked],
        **await use_resources(used),
        **await use_prompts(used),
    }
    return answers


async def use_resources(used: Used) -> Answers:
    client = used.client
    listed = (await client.list_resources()).resources
    templates = (await client.list_resource_templates()).resource_templates
    made = await used.call(
        "gzip-file-as-resource", name="made.gz", data="data:text/plain,hello", outputType="resourceLink"
    )
    return {
        "resources": [plain(each) for each in listed],
        "templates": [plain(each) for each in templates],
        "read": [plain(await client.read_resource(str(each.uri))) for each in listed[:3]],
        "dynamic": plain(await client.read_resource("demo://resource/dynamic/text/7")),
        "binary": plain(await client.read_resource("demo://resource/dynamic/blob/7")),
        "made": made,
        "made resource": plain(await client.read_resource("demo://resource/session/made.gz")),
        "listed with it": len((await client.list_resources()).resources) - len(listed),
        "no resource": await used.refused(lambda: client.read_resource("demo://nowhere")),
    }


async def use_prompts(used: Used) -> Answers:
    client, prefix = used.client, used.prefix
    own = [each for each in (await client.list_prompts()).prompts if each.name.startswith(prefix)]
    engineer = types.PromptReference(name=f"{prefix}completable-prompt")
    resource = {"resourceType": "Text", "resourceId": "1"}
    return {
        "prompts": [{**plain(each), "name": each.name.removeprefix(prefix)} for each in own],
        "simple": plain(await client.get_prompt(f"{prefix}simple-prompt")),
        "with arguments": plain(await client.get_prompt(f"{prefix}args-prompt", {"city": "Oslo"})),
        "with resource": plain(await client.get_prompt(f"{prefix}resource-prompt", resource)),
        "completed": plain(await client.complete(engineer, {"name": "department", "value": "S"})),
        "completed in context": plain(
            await client.complete(
                engineer,
                {"name": "name", "value": "A"},
                context_arguments={"department": "Engineering"},
            )
        ),
    }


async def test_every_feature_of_the_reference_server_works_through_us(served: Home, trusted: Path) -> None:
    await compare(served, trusted, "all", use_everything)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_subscriptions_and_log_messages_of_the_reference_server_work_through_us(
    served: Home, trusted: Path
) -> None:
    uri = "demo://resource/dynamic/text/1"

    async def use(used: Used) -> Answers:
        heard = used.who.heard

        async def has_heard(what: str) -> None:
            async def look() -> bool | None:
                return any(each.startswith(what) for each in heard) or None

            await eventually(look)

        await used.client.set_logging_level(LOG_LEVEL)  # pyright: ignore[reportDeprecated]
        await used.client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
        await used.call("toggle-subscriber-updates")
        await has_heard("notifications/resources/updated")
        await used.call("toggle-subscriber-updates")
        await used.client.unsubscribe_resource(uri)  # pyright: ignore[reportDeprecated]
        await used.call("toggle-simulated-logging")
        await has_heard("log ")
        await used.call("toggle-simulated-logging")
        subscribed = [each for each in heard if "Subscribe" in each]
        return {"acknowledged": subscribed, "updated": "notifications/resources/updated" in heard}

    await compare(served, trusted, "all", use, ["legacy"])  # MCP 2026-07-28 has neither method


async def test_a_tool_that_the_reference_server_offers_as_a_task_only_is_called_like_any_other(
    served: Home, trusted: Path
) -> None:
    """Its task asks in the middle. The client knows nothing of it, and gets its states as progress of the call."""
    reports: list[str] = []
    asked: list[list[str]] = []
    steps: dict[str, list[tuple[float, str]]] = {"legacy": [], "2026-07-28": []}

    async def use(generation: Generation) -> None:
        async with using(stdio(served, trusted), "all__", trusted, generation) as used:

            async def step(progress: float, total: float | None, message: str | None) -> None:
                del total
                steps[generation].append((progress, message or ""))

            arguments = {"topic": "python", "ambiguous": True}
            tool = "all__simulate-research-query"
            found = plain(await used.client.call_tool(tool, arguments, progress_callback=step))
            reports.append(found["content"][0]["text"])
            asked.append(used.who.asked)

    async with anyio.create_task_group() as group:
        group.start_soon(use, "legacy")
        group.start_soon(use, "2026-07-28")

    assert all("# Research Report: python (User accepted without selection)" in each for each in reports)
    assert ["could have multiple interpretations" in str(each) for each in asked] == [True, True]
    for heard in steps.values():
        assert "Analyzing content..." in [message for _, message in heard]
        assert [value for value, _ in heard] == sorted({value for value, _ in heard})


async def use_files(used: Used, folder: Path) -> Answers:
    at = {
        name: str(folder / "files" / name) for name in ("a.txt", "b.txt", "new.txt", "moved.txt", "pixel.png")
    }
    here = str(folder / "files")
    return {
        "tools": await list_tools(used),
        "allowed": await used.call("list_allowed_directories"),
        "read": await used.call("read_text_file", path=at["a.txt"], head=1),
        "read many": await used.call("read_multiple_files", paths=[at["a.txt"], at["b.txt"], "nowhere"]),
        "media": await used.call("read_media_file", path=at["pixel.png"]),
        "list": await used.call("list_directory", path=here),
        "sizes": await used.call("list_directory_with_sizes", path=here),
        "tree": await used.call("directory_tree", path=here),
        "write": await used.call("write_file", path=at["new.txt"], content="one\ntwo\n"),
        "edit": await used.call(
            "edit_file", path=at["new.txt"], edits=[{"oldText": "two", "newText": "three"}]
        ),
        "move": await used.call("move_file", source=at["new.txt"], destination=at["moved.txt"]),
        "search": await used.call("search_files", path=here, pattern="*.txt"),
        "make": await used.call("create_directory", path=str(folder / "files" / "sub")),
        "missing": await used.call("read_text_file", path=at["new.txt"]),
        "moved": await used.call("read_text_file", path=at["moved.txt"]),
    }


async def test_the_filesystem_server_works_through_us(served: Home, trusted: Path) -> None:
    files = trusted / "files"

    def prepare() -> None:
        subprocess.run(["rm", "-rf", str(files)], check=True)
        files.mkdir()
        (files / "a.txt").write_text("first\nsecond\n")
        (files / "b.txt").write_text("other\n")
        (files / "pixel.png").write_bytes(b"\x89PNG\r\n\x1a\n")

    await compare(served, trusted, "fs", lambda used: use_files(used, trusted), prepare=prepare)


async def use_git(used: Used, repo: str) -> Answers:
    return {
        "tools": await list_tools(used),
        "status": await used.call("git_status", repo_path=repo),
        "unstaged": await used.call("git_diff_unstaged", repo_path=repo),
        "add": await used.call("git_add", repo_path=repo, files=["a.txt"]),
        "staged": await used.call("git_diff_staged", repo_path=repo),
        "commit": await used.call("git_commit", repo_path=repo, message="Second"),
        "log": await used.call("git_log", repo_path=repo, max_count=5),
        "show": await used.call("git_show", repo_path=repo, revision="HEAD"),
        "branch": await used.call("git_create_branch", repo_path=repo, branch_name="topic"),
        "checkout": await used.call("git_checkout", repo_path=repo, branch_name="topic"),
        "branches": await used.call("git_branch", repo_path=repo, branch_type="local"),
        "diff": await used.call("git_diff", repo_path=repo, target="HEAD~1"),
        "reset": await used.call("git_reset", repo_path=repo),
        "no repository": await used.call("git_status", repo_path=f"{repo}/nowhere"),
    }


async def test_the_git_server_works_through_us(served: Home, trusted: Path) -> None:
    repo = trusted / "repo"

    def prepare() -> None:
        subprocess.run(["rm", "-rf", str(repo)], check=True)
        repo.mkdir()
        (repo / "a.txt").write_text("one\n")
        for words in (
            "init -q -b main",
            "config user.name Ada",
            "config user.email ada@example.org",
            "add .",
            "commit -q -m First",
        ):
            subprocess.run(["git", *words.split()], cwd=repo, env=ENV, check=True)
        (repo / "a.txt").write_text("one\ntwo\n")

    await compare(served, trusted, "git", lambda used: use_git(used, str(repo)), prepare=prepare)
