"""Which agents are there: what is found of each, what is said of those that are missing, and who takes whose place."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail import __version__
from handrail.agents.registry import (
    NO_COMMAND,
    PASSED,
    ListedAgent,
    Registry,
    build_own_section,
    has_provider_key,
    known_agents,
)
from handrail.config import OWN_COMMAND, AgentSection
from handrail.paths import own_python

CLAUDE = "@agentclientprotocol/claude-agent-acp"


@pytest.fixture
def around(tmp_path: Path) -> dict[str, str]:
    """An environment with nothing in it but what a test installs."""
    (tmp_path / "bin").mkdir()
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}


def install(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def link(around: Mapping[str, str], name: str, program: Path) -> Path:
    """As npm puts a package's program on the PATH."""
    linked = Path(around["PATH"], name)
    linked.symlink_to(program)
    return linked


def npm_package(modules: Path, name: str, version: str, **programs: str) -> Path:
    """As npm lays it out; the folder of the package."""
    for program in programs.values():
        install(modules / name / program)
    about = {"name": name, "version": version, "bin": programs}
    (modules / name / "package.json").write_text(json.dumps(about))
    return modules / name


async def listed(around: Mapping[str, str], *named: AgentSection) -> dict[str, ListedAgent]:
    return {found.name: found for found in await Registry(named, around, common=()).listing()}


@pytest.mark.anyio
async def test_what_is_missing_says_so_with_the_command_that_installs_it(around: dict[str, str]) -> None:
    agents = await listed(around)
    assert {"claude", "codex", "gemini", "opencode", "goose", "kimi", "vibe", "qwen"} <= set(agents)
    assert not any(found.found for name, found in agents.items() if name not in ("demo", "handrail"))
    assert agents["claude"].install == f"npm install --global {CLAUDE}"
    assert agents["claude"].why == "claude-agent-acp is not installed. Nor is npm, which would install it."
    assert agents["vibe"].install == "uv tool install mistral-vibe"
    assert all(found.why and found.install for found in agents.values() if not found.found)


@pytest.mark.anyio
async def test_an_agent_whose_adapter_alone_is_missing_says_that(around: dict[str, str]) -> None:
    for program in ("claude", "npm"):
        install(Path(around["PATH"], program))
    assert (await listed(around))["claude"].why == (
        "Claude Code is installed, but not claude-agent-acp, its adapter."
    )


@pytest.mark.anyio
async def test_a_program_on_the_path_is_found_with_the_version_of_its_package(around: dict[str, str]) -> None:
    package = npm_package(Path(around["HOME"], "lib/node_modules"), CLAUDE, "9.8.7", x="dist/index.js")
    linked = link(around, "claude-agent-acp", package / "dist/index.js")
    found = (await listed(around))["claude"]
    assert (found.found, found.version, found.command) == (True, "9.8.7", (str(linked),))
    assert (found.why, found.install) == ("", None)


@pytest.mark.anyio
async def test_a_package_that_npx_has_kept_is_found_without_the_network(around: dict[str, str]) -> None:
    node = install(Path(around["PATH"], "node"))
    modules = Path(around["HOME"], ".npm/_npx/0a1b2c/node_modules")
    npm_package(modules, "@google/gemini-cli", "1.2.3", gemini="bundle/gemini.js")
    found = (await listed(around))["gemini"]
    entry = str(modules / "@google/gemini-cli/bundle/gemini.js")
    assert (found.version, found.command) == ("1.2.3", (str(node), entry, "--acp"))


@pytest.mark.anyio
async def test_a_tool_that_uv_keeps_is_found_with_its_version(around: dict[str, str]) -> None:
    tool = Path(around["HOME"], ".local/share/uv/tools/mistral-vibe")
    program = install(tool / "bin/vibe-acp")
    (tool / "lib/python3.13/site-packages/mistral_vibe-2.3.4.dist-info").mkdir(parents=True)
    found = (await listed(around))["vibe"]
    assert (found.version, found.command) == ("2.3.4", (str(program),))


@pytest.mark.anyio
async def test_a_description_that_is_no_json_hides_the_version_and_nothing_else(
    around: dict[str, str],
) -> None:
    package = npm_package(Path(around["HOME"], "lib/node_modules"), "opencode-ai", "1", x="bin/opencode")
    (package / "package.json").write_text("{")
    link(around, "opencode", package / "bin/opencode")
    found = (await listed(around))["opencode"]
    assert (found.found, found.version, found.command[1:]) == (True, None, ("acp",))


@pytest.mark.anyio
async def test_the_configuration_takes_the_place_of_a_known_agent_and_comes_first(
    around: dict[str, str],
) -> None:
    mine = install(Path(around["HOME"], "mine"))
    named = AgentSection(name="claude", command=(str(mine), "--acp"), env_pass=("KEY",))
    registry = Registry((named, AgentSection(name="own", command=("no-such-program",))), around, common=())
    first, second, *rest = await registry.listing()
    assert (first.name, first.found, first.source, first.command) == ("claude", True, "config", named.command)
    assert (second.name, second.found, second.install) == ("own", False, None)
    assert second.why == "There is no program no-such-program, which the configuration names."
    assert "claude" not in [found.name for found in rest]
    assert registry.spec("claude") == named.model_copy(update={"title": "Claude Code"})


@pytest.mark.anyio
async def test_an_entry_of_a_known_name_takes_what_it_does_not_say_from_that_agent(
    around: dict[str, str],
) -> None:
    opencode = install(Path(around["PATH"], "opencode"))
    named = AgentSection(name="opencode", env_pass=("KEY",))
    own = AgentSection(name="gemini", command=("my-gemini",), title_is_command=False)
    registry = Registry((named, own), around, common=())
    spec = registry.spec("opencode")
    assert spec is not None
    assert (spec.command, spec.writes_itself, spec.env_pass) == ((str(opencode), "acp"), True, ("KEY",))
    gemini = registry.spec("gemini")
    assert gemini is not None
    assert (gemini.command, gemini.title_is_command) == (("my-gemini",), False), "what it says counts"
    found = {agent.name: agent for agent in await registry.listing()}
    assert (found["opencode"].found, found["opencode"].source) == (True, "config")
    assert (found["gemini"].found, found["gemini"].package) == (False, "@google/gemini-cli")


@pytest.mark.anyio
async def test_an_entry_of_an_unknown_name_without_a_command_says_what_is_missing(
    around: dict[str, str],
) -> None:
    found = (await listed(around, AgentSection(name="mine")))["mine"]
    assert (found.found, found.why) == (False, NO_COMMAND)


@pytest.mark.anyio
async def test_a_program_of_a_python_environment_is_listed_with_its_version(around: dict[str, str]) -> None:
    environment = Path(around["HOME"], "venv")
    program = install(environment / "bin/mine-acp")
    for name, script in (("other-9", "mine"), ("mine_agent-1.2.3", "mine-acp")):
        described = environment / f"lib/python3.13/site-packages/{name}.dist-info"
        described.mkdir(parents=True)
        (described / "entry_points.txt").write_text(f"[console_scripts]\n{script} = mine:main\n")
    found = (await listed(around, AgentSection(name="mine", command=(str(program),))))["mine"]
    assert (found.found, found.version) == (True, "1.2.3")


@pytest.mark.anyio
async def test_what_can_be_talked_to_comes_before_what_cannot(around: dict[str, str]) -> None:
    install(Path(around["PATH"], "goose"))
    found = [found.found for found in await Registry((), around, common=()).listing()]
    assert found == sorted(found, reverse=True)
    assert (await listed(around))["demo"].source == "built in"


def test_every_agent_of_the_list_can_be_asked_for_before_anything_was_looked_at(
    around: dict[str, str],
) -> None:
    install(Path(around["PATH"], "goose"))
    registry = Registry((), around, common=())
    goose, qwen, demo = registry.spec("goose"), registry.spec("qwen"), registry.spec("demo")
    assert goose is not None
    assert goose.command == (str(Path(around["PATH"], "goose")), "acp")
    assert qwen is not None
    assert qwen.command == ("qwen", "--acp")
    assert demo is not None
    assert demo.command[-2:] == ("-m", "handrail.demo.acp_agent")
    assert registry.spec("nobody") is None


def test_the_list_holds_each_agent_once_with_a_way_to_install_it() -> None:
    known = known_agents()
    assert len({agent.id for agent in known}) == len(known)
    assert [agent.id for agent in known if agent.install is None] == []
    quirks = {agent.id: agent.handrail for agent in known}
    assert quirks["gemini"].title_is_command
    assert quirks["gemini"].missing_file_is_empty
    assert quirks["kimi"].input_in_content
    assert quirks["opencode"].writes_itself


def test_our_own_agent_is_started_as_a_program_of_its_own_for_each_thread(around: dict[str, str]) -> None:
    spec = Registry((), around, common=()).spec("handrail")
    assert spec is not None
    assert spec.command == (*own_python(), "-m", "handrail", "agent")
    assert spec.one_per_thread
    assert {"ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "https_proxy", "SSL_CERT_FILE"} <= set(spec.env_pass)


@pytest.mark.anyio
async def test_our_own_agent_says_what_it_lacks_and_comes_after_the_configured_ones(
    around: dict[str, str],
) -> None:
    mine = AgentSection(name="mine", command=(str(install(Path(around["HOME"], "mine"))),))
    first, second, *_ = await Registry((mine,), around, common=()).listing()
    assert (first.name, second.name, second.source) == ("mine", "handrail", "built in")
    assert (second.found, second.version) == (True, __version__)
    assert "`handrail keys set anthropic`" in second.why
    keyed = await Registry((), around, common=(), keyed=True).listing()
    assert (keyed[0].name, keyed[0].why) == ("handrail", "")


def test_the_configuration_changes_of_our_own_agent_only_what_it_names(around: dict[str, str]) -> None:
    named = AgentSection.model_validate({"name": "handrail", "title": "Ours", "env": {"OPENAI_API_KEY": "k"}})
    own = build_own_section((named,), {"HANDRAIL_HOME": "/h"})
    spec = Registry((named,), around, common=(), own=own).spec("handrail")
    assert spec is not None
    assert (spec.title, spec.command, spec.one_per_thread) == ("Ours", OWN_COMMAND, True)
    assert spec.env == {"HANDRAIL_HOME": "/h", "OPENAI_API_KEY": "k"}
    assert spec.env_pass == PASSED


def test_another_program_of_that_name_takes_the_place_of_our_own(around: dict[str, str]) -> None:
    other = AgentSection(name="handrail", command=("another",))
    assert Registry((other,), around, common=()).spec("handrail") is other


@pytest.mark.parametrize(
    ("given", "has"),
    [
        ({}, False),
        ({"HANDRAIL_MODEL": "openai:x"}, False),
        ({"ANTHROPIC_API_KEY": ""}, False),
        ({"ANTHROPIC_API_KEY": "k"}, True),
        ({"OLLAMA_BASE_URL": "http://127.0.0.1:1"}, True),
        ({"KEY": "k"}, False),
    ],
)
def test_a_key_or_the_address_of_a_model_is_what_it_takes(given: dict[str, str], has: bool) -> None:
    assert has_provider_key(given) is has
