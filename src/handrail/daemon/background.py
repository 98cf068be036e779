"""The daemon's background tasks: retention, the search index, notifications. They follow changed settings.

Each task gets its limits from config.toml; `follow` hands it those of a change that a person made on the page.
"""

import os
from functools import partial
from pathlib import Path

from anyio.abc import TaskGroup

from handrail.config import Config, NotifySection
from handrail.daemon.http_notifications import build_http_notifier, is_quiet_now
from handrail.daemon.keeper_memory import PolicyMemory
from handrail.daemon.notifications import Notifier
from handrail.daemon.terminal_events import TerminalEvents
from handrail.gate.rules.rules import UserRules
from handrail.paths import Places
from handrail.server.context import ServerContext
from handrail.store.blobs import BlobRetention, Blobs
from handrail.store.journal_retention import JournalRetention
from handrail.terminal.retention import Retention
from handrail.terminal.wait.input_detection import InputDetector


def start_background(
    group: TaskGroup,
    config: Config,
    places: Places,
    context: ServerContext,
    blobs: Blobs,
    memory: PolicyMemory,
    terminal_events: TerminalEvents,
) -> None:
    """Start the tasks, and have them follow changed settings."""
    terminal = Retention(
        context.records,
        context.terminals,
        places.spool,
        config.terminal.keep_days,
        config.terminal.keep_bytes,
        terminal_events.forgotten,
    )
    undo = BlobRetention(blobs, config.undo.keep_days, config.undo.keep_bytes)
    journal = JournalRetention(
        context.journal,
        places.database,
        config.journal.keep_days,
        partial(memory.prepare_compaction, context.policy),
        memory.announce_compaction,
    )

    def follow(changed: Config) -> None:
        terminal.keep_days, terminal.keep_bytes = changed.terminal.keep_days, changed.terminal.keep_bytes
        undo.keep_days, undo.keep_bytes = changed.undo.keep_days, changed.undo.keep_bytes
        journal.keep_days = changed.journal.keep_days

    context.settings_file.on_change.append(follow)
    context.settings_file.on_change.append(partial(_follow_policy, context, places.config))
    input_detector = InputDetector(context.terminals, context.marked)
    for work in (
        context.terminals.run,
        input_detector.run,
        terminal.run,
        undo.run,
        journal.run,
        context.index.run,
        context.demo.run,
    ):
        group.start_soon(work)
    group.start_soon(memory.run, context.policy)
    _start_notifiers(group, config.notify, context)


def _follow_policy(context: ServerContext, path: Path, config: Config) -> None:
    gate = context.gate
    gate.pipeline.expire_seconds = config.approvals.expire_seconds
    gate.rules.replace_standing(UserRules.of(config, path, gate.rules.home))


def _start_notifiers(group: TaskGroup, settings: NotifySection, context: ServerContext) -> None:
    """Start the desktop notifications, and the messages to ntfy and the webhook."""
    current = settings

    def is_quiet() -> bool:
        return not (current.desktop or context.policy.holds_config) or is_quiet_now(current)

    desktop = Notifier(context.gate, context.presence.count, os.environ, quiet=is_quiet)
    messages = build_http_notifier(context, settings)

    def follow(changed: Config) -> None:
        nonlocal current
        current = changed.notify
        messages.follow(current)

    context.settings_file.on_change.append(follow)
    context.clients.on_notice.append(lambda notice: desktop.hear(current, notice))
    is_warning = settings.desktop or context.policy.holds_config
    group.start_soon(desktop.run, context.policy.changes if is_warning else ())
    group.start_soon(messages.run)
