"""The tests' tree mirrors the package: who looks for the tests of a module finds them without a search."""

from pathlib import Path

from tests.house.source import ROOT, Module, modules
from tests.house.source import imports as imports_of

TESTS = ROOT / "tests"
BESIDE = {"house", "contracts", "e2e", "bench", "model", "real", "safety", "browser"}  # they mirror no room

# Parts that only their whole can show at work, and the test that does.
PART_OF: dict[str, str] = {
    **dict.fromkeys(
        ("handrail.__main__", "handrail.daemon.daemon", "handrail.daemon.toolbox"), "e2e/test_daemon.py"
    ),
    "handrail.errors": "store/test_unwritable.py",
    "handrail.demo.acp_agent": "demo/test_mind.py",
    **dict.fromkeys(
        ("handrail.store.export_markdown", "handrail.store.export", "handrail.store.threads.parts"),
        "store/export/test_exporting.py",
    ),
    "handrail.store.debounce": "store/test_journal.py",
    **{
        f"handrail.store.{name}": "store/test_threads.py"
        for name in (
            *("projection.messages", "projection.operations", "projection.threads"),
            *("query.operations", "query.places", "query.threads"),
            *("thread.rows", "thread.statements", "thread.told"),
        )
    },
    "handrail.store.operations": "store/test_activities.py",
    **{f"handrail.store.words.{name}": "store/test_index.py" for name in ("asked", "file", "gather", "text")},
    **dict.fromkeys(("handrail.cli.chat_session", "handrail.cli.commands.chat"), "cli/test_chat.py"),
    **{
        f"handrail.store.events.{name}": "store/test_codec.py"
        for name in (
            *("access", "activity", "approval", "call", "daemon"),
            *("operation", "rule", "terminal", "thread", "undo"),
        )
    },
    **dict.fromkeys(("handrail.door.in_flight", "handrail.door.daemon_connection"), "door/test_pump.py"),
    "handrail.gate.rules.rule_builder": "gate/rules/test_rules.py",
    "handrail.gate.rules.suggestions": "gate/rules/test_suggest.py",
    "handrail.gate.pipeline": "gate/test_gate.py",
    **{
        f"handrail.agents.builtin.model.{name}": "agents/builtin/model/test_ask.py"
        for name in ("line", "trouble")
    },
    "handrail.agents.acp.connection": "agents/program/test_peer.py",
    **{
        f"handrail.agents.registry.{name}": "agents/registry/test_registry.py"
        for name in ("installed", "own")
    },
    **{
        f"handrail.agents.builtin.tools.{name}": "agents/builtin/tools/test_server.py"
        for name in ("link", "transport")
    },
    **{
        f"handrail.agents.builtin.{name}": f"agents/builtin/hosted/test_{test}.py"
        for name, test in {
            **dict.fromkeys(("__main__", "hosted.wire"), "running"),
            **dict.fromkeys(("hosted.conversation", "hosted.replay"), "program"),
            "hosted.delivery": "speech",
            "hosted.work": "session",
        }.items()
    },
    "handrail.agents.lenient_json": "agents/talk/test_recorder.py",
    **{
        f"handrail.agents.builtin.thinking.{name}": "agents/builtin/thinking/test_loop.py"
        for name in ("asking", "calling")
    },
    "handrail.own_agent.compaction": "agents/builtin/thinking/test_compaction.py",
    "handrail.own_agent.tools.subagent": "agents/builtin/tools/test_dispatch.py",
    **{f"handrail.agents.talk.{name}": "agents/talk/test_recorder.py" for name in ("shown", "telling")},
    **dict.fromkeys(
        ("handrail.agents.conversation.send_prompt", "handrail.agents.conversation.participants"),
        "agents/talk/test_talk.py",
    ),
    "handrail.agents.conversation.prompt_queue": "agents/talk/test_prompt.py",
    **{
        f"handrail.gate.shell.{name}": "gate/shell/test_shell.py"
        for name in ("beyond", "characters", "plain", "syntax", "wrappers")
    },
    **{
        f"handrail.keeper.{name}": "keeper/test_keeper.py"
        for name in ("__main__", "audience", "facts", "held", "launch", "link", "orders", "orphans", "shelf")
    },
    "handrail.keeper.attach": "keeper/test_attach.py",
    "handrail.keeper.child": "terminal/test_terminals.py",
    "handrail.server.guard": "safety/test_header_matrix.py",
    "handrail.server.app": "safety/test_wire.py",
    "handrail.server.live.events": "e2e/test_live.py",
    "handrail.server.live.terminal": "e2e/test_attach.py",
    **{f"handrail.server.terminal_{name}": "e2e/test_terminal_routes.py" for name in ("views", "wire")},
    **{
        f"handrail.server.routes.{name}": "e2e/test_terminal_routes.py"
        for name in ("named", "output", "sharing", "terminals")
    },
    **{
        f"handrail.server.{name}": "e2e/test_threads.py"
        for name in (
            *("operation_views", "thread_views", "thread_wire"),
            *(
                f"routes.{name}"
                for name in (
                    *("agents", "conversations", "images", "keeping", "prompts", "search", "taken"),
                    "threads",
                )
            ),
        )
    },
    **dict.fromkeys(("handrail.daemon.agent_host", "handrail.server.live.thread"), "e2e/test_thread_live.py"),
    "handrail.server.mcp.local_socket": "e2e/test_socket.py",
    "handrail.server.mcp.streamable_http": "e2e/test_mcp.py",
    "handrail.server.mcp.client_connection": "server/test_talk.py",
    "handrail.server.api.sign_in": "safety/test_sign_in.py",
    **{
        f"handrail.server.{name}": "e2e/test_api.py"
        for name in ("health", "http", "openapi", "rooms", "shape", "views", "wire")
    },
    **{
        f"handrail.server.routes.{name}": "e2e/test_routes.py"
        for name in ("calls", "credentials", "operations", "person", "watching")
    },
    **{
        f"handrail.server.{name}": "e2e/test_approvals.py"
        for name in ("approval_views", "approval_wire", "large", "routes.approvals", "routes.asked")
    },
    **{
        f"handrail.server.{name}": "e2e/test_rules.py"
        for name in (
            "rule_views",
            "rule_wire",
            "routes.rules",
            "routes.folders",
            "routes.made",
            "routes.weighed",
        )
    },
    "handrail.server.api.undo": "e2e/test_undo.py",
    **{f"handrail.store.{name}": "store/test_verify.py" for name in ("chain", "head")},
    **{f"handrail.store.{name}": "store/test_journal.py" for name in ("loop", "writer")},
    "handrail.store.rows": "store/test_query.py",
    "handrail.store.threads.queries": "store/test_retention.py",
    **{
        f"handrail.store.{name}": "store/test_query.py"
        for name in ("query.asking", "query.credentials", "query.terminals")
    },
    **{
        f"handrail.store.projection.{name}": f"store/{test}.py"
        for name, test in {
            **dict.fromkeys(("statement", "credentials", "terminals", "sharing"), "test_query"),
            **{name: f"query/test_{name}" for name in ("approvals", "calls", "rules")},
            "files": "query/test_changes",
            "uses": "query/test_rules",
        }.items()
    },
    "handrail.terminal.person_check": "safety/test_self_approval.py",
    "handrail.terminal.output.screen_replay": "terminal/output/test_screen.py",
    **{
        f"handrail.terminal.output.{name}": "terminal/output/test_search.py"
        for name in ("held", "seams", "strip", "window")
    },
    **{
        f"handrail.tools.files.{name}": "tools/files/test_edits.py"
        for name in ("applied", "change", "dress", "work")
    },
    **{
        f"handrail.tools.search.{name}": "tools/search/test_search.py"
        for name in ("findings", "query", "tree")
    },
    **{f"handrail.tools.{name}": "tools/test_workspace.py" for name in ("place", "protected")},
    "handrail.tools.results": "tools/test_schemas.py",
    **{
        f"handrail.tools.commands.{name}": "tools/commands/test_command_claims.py"
        for name in ("hosts", "mentions", "names", "programs")
    },
    "handrail.gate.tool": "tools/undo/test_undo.py",
    **{
        f"handrail.tools.undo.{name}": "tools/undo/test_undo.py"
        for name in ("undo_hands", "undo_step", "undone")
    },
    "handrail.tools.terminals.get_terminal_buffer": "tools/terminals/test_buffers.py",
    "handrail.tools.terminals.wait_for_terminal": "tools/terminals/test_waits.py",
    "handrail.tools.commands.run_in_terminal": "tools/commands/test_typed.py",
    "handrail.tools.terminals.send_to_terminal": "tools/commands/test_typed.py",
}


def own_test(module: Module) -> Path:
    """tests/gate/test_call.py for handrail.gate.call."""
    *folders, name = module.name.split(".")[1:]
    return TESTS.joinpath(*folders, f"test_{name}.py")


def is_tested(module: Module, imported: dict[str, frozenset[str]]) -> bool:
    """It has a test file of its own name, or a test in its room's folder that imports it."""
    return own_test(module).is_file() or module.name in imported.get(module.room, frozenset())


def imported_by_tests() -> dict[str, frozenset[str]]:
    """For each folder of tests, the modules of the package that its tests import."""
    known = frozenset(module.name for module in modules())
    return {
        folder.name: frozenset(
            name
            for path in folder.rglob("*.py")
            for name in imports_of(Module(f"tests.{path.stem}", path), known)
        )
        for folder in TESTS.iterdir()
        if folder.is_dir()
    }


def test_every_module_has_a_test_where_one_would_look_for_it() -> None:
    imported = imported_by_tests()
    untested = [
        module.name
        for module in modules()
        if module.path.name != "__init__.py" and module.name not in PART_OF
        if not is_tested(module, imported)
    ]
    assert untested == []


def test_every_folder_of_tests_mirrors_a_room() -> None:
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders - BESIDE - {module.room for module in modules()} == set()


def test_every_part_and_the_test_that_shows_it_exist() -> None:
    known = {module.name for module in modules()}
    assert [part for part, test in PART_OF.items() if part not in known or not (TESTS / test).is_file()] == []
