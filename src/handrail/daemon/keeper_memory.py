"""What the keeper remembers for the next daemon: sign-ins, agents that launched doors, the policy, the journal's head, where
devices connect, the sessions of clients; and whether it restarts this daemon.

Policy and head are compared at the start, so that a change behind the daemon's back is detected. All are stored after each
change. The keeper's memory is out of reach for the processes that it started, but it ends with the keeper.
"""

import logging
from collections.abc import MutableMapping
from contextlib import suppress
from functools import partial

import anyio
from anyio import to_thread

from handrail.config import Config, DevicesSection
from handrail.flat_settings import describe_settings
from handrail.gate.rules.accepted_policy import AcceptedPolicy, FoundPolicy
from handrail.gate.rules.policy_snapshot import Baseline, PolicySnapshot, decode_baseline
from handrail.keeper.protocol import RESTART_KEY, Done, Remember
from handrail.paths import Places
from handrail.server.access import Access, Client
from handrail.server.client_sessions import ClientSessions
from handrail.server.device_listener import DeviceListener
from handrail.server.editor_pairings import EditorPairings
from handrail.store.anchor import check_anchor
from handrail.store.hash_chain import Link
from handrail.store.integrity import check_compactions, has_event
from handrail.store.journal import Journal
from handrail.store.records import Records
from handrail.store.rule_replay import RuleReplay
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.person_check import DoorLaunchers, explain_no_person, runs_inside_handrail
from handrail.terminal.terminals import Terminals

log = logging.getLogger(__name__)

POLICY, HEAD, SIGN_INS, LAUNCHERS, EDITORS = "policy", "journal-head", "sign-ins", "launchers", "editors"
COMPACTION, DEVICES, CLIENTS = "journal-compaction", "devices", "client-sessions"
"""Keys in the keeper's memory."""
SEALED_INSIDE = (
    "This daemon was started from inside something Handrail had started, or from a shell that carries its mark, so it takes "
    "nobody for a person, and no page can sign in. Run `handrail down` and then `handrail up` in a terminal of your own."
)
UNATTENDED = "HANDRAIL_UNATTENDED"
"""Set in the environment of a daemon that a door, the command line or the keeper started, not a person directly."""
HEAD_SECONDS = 1.0
"""Least seconds between two stored heads of the journal. Bounds the cost under load."""
KEEP_SECONDS = 2.0
"""Bounds the wait for a keeper that hangs: a person waits for the rule that is being added."""
LEAVE_SECONDS = 0.5
"""Bounds the wait for a keeper that hangs when the daemon stops: a person waits for it."""
RETRY_SECONDS = 0.02
"""Interval at which a lost keeper is looked for. Short: until the next one knows the policy, another daemon would not."""


class PolicyMemory:
    """The keeper's memory of the accepted policy and of the journal's head."""

    def __init__(self, keeper: Keeper, journal: Journal, places: Places) -> None:
        self._keeper, self._journal, self._places = keeper, journal, places
        self._restarts_daemon = False
        self._kept_by = 0
        self._lost = anyio.Event()

    async def find(
        self, config: Config, replay: RuleReplay, environ: MutableMapping[str, str]
    ) -> FoundPolicy:
        """Compare the start with the memory. A daemon that runs inside Handrail trusts no keeper's memory."""
        self._restarts_daemon = config.daemon.restart
        is_inside = runs_inside_handrail()
        attended = environ.pop(UNATTENDED, "") == "" and not is_inside
        faults = (*replay.faults, *await to_thread.run_sync(check_anchor, self._places.database))
        if not is_inside and (head := _decode_head(await self._keeper.recall(HEAD))) is not None:
            faults += self._check_head(head)
            announced = await self._keeper.recall(COMPACTION)
            faults += await to_thread.run_sync(check_compactions, self._places.database, head, announced)
        return FoundPolicy(
            snapshot=PolicySnapshot(
                rules={each.rule.id: each.rule for each in replay.rules if each.rule.scope != "session"},
                folders={each.folder: each.config for each in replay.folders},
                settings=describe_settings(config),
            ),
            baseline=None if is_inside else await self._recall_baseline(),
            attended=attended,
            faults=faults,
        )

    async def keep(self, blob: bytes) -> None:
        """Store the accepted policy. Without a keeper, `run` stores it later."""
        try:
            with anyio.move_on_after(KEEP_SECONDS):
                await self._keeper.request(Remember(self._keeper.number(), POLICY, blob), Done)
        except KeeperError as problem:
            log.warning("the keeper does not remember the policy: %s", problem)

    def keeper_lost(self) -> None:
        """The keeper died: store everything again in the next one."""
        self._lost.set()

    async def run(self, policy: AcceptedPolicy) -> None:
        """Store the policy and the head of the journal after each change, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(policy.run)
            while True:
                if self._keeper.pid == 0:
                    await anyio.sleep(RETRY_SECONDS)
                    continue
                await self._store(policy)
                await self._wait_for_news()
                with anyio.move_on_after(HEAD_SECONDS):
                    await self._lost.wait()

    async def store_head(self, policy: AcceptedPolicy) -> Link | None:
        """Store the head of the journal and return it; None without a keeper, or if no person has accepted how the
        journal changed."""
        link = self._journal.link
        if policy.holds_journal or not await self._remember(HEAD, _encode_head(link)):
            return None
        policy.kept_seq = link.seq
        return link

    async def leave(self, policy: AcceptedPolicy) -> None:
        """Store the head of the journal, and notify the keeper that this daemon ends on purpose."""
        await self.store_head(policy)
        self._restarts_daemon = False
        with anyio.move_on_after(LEAVE_SECONDS):
            await self._remember_restart()

    async def _remember_restart(self) -> None:
        await self._remember(RESTART_KEY, b"1" if self._restarts_daemon else b"")

    async def prepare_compaction(self, policy: AcceptedPolicy) -> Link | None:
        """Store the head, before which events may be removed; None while no person has accepted the policy."""
        return None if policy.changes else await self.store_head(policy)

    async def announce_compaction(self, payload_hash: bytes) -> bool:
        """Store the hash of the next JournalCompacted event; return whether the keeper has it."""
        return await self._remember(COMPACTION, payload_hash)

    async def _remember(self, key: str, value: bytes) -> bool:
        with suppress(KeeperError), anyio.move_on_after(KEEP_SECONDS):
            await self._keeper.request(Remember(self._keeper.number(), key, value), Done)
            return True
        return False

    async def _store(self, policy: AcceptedPolicy) -> None:
        self._lost = anyio.Event()
        if self._keeper.pid != self._kept_by:
            self._kept_by = self._keeper.pid
            await self._remember_restart()
            await policy.remember()
        await self.store_head(policy)

    async def _wait_for_news(self) -> None:
        """Wait for a commit, or for the loss of the keeper."""
        async with anyio.create_task_group() as group:

            async def wait_for_loss() -> None:
                await self._lost.wait()
                group.cancel_scope.cancel()

            group.start_soon(wait_for_loss)
            await self._journal.advanced(self._journal.link.seq)
            group.cancel_scope.cancel()

    async def _recall_baseline(self) -> Baseline | None:
        return decode_baseline(await self._keeper.recall(POLICY))

    def _check_head(self, head: Link) -> tuple[str, ...]:
        if has_event(self._places.database, head):
            return ()
        return (f"The journal had reached event {head.seq}, which is gone or altered.",)


def _encode_head(link: Link) -> bytes:
    return f"{link.seq} {link.chain.hex()}".encode()


def _decode_head(blob: bytes | None) -> Link | None:
    if not blob:
        return None
    seq, chain = blob.decode().split()
    return Link(int(seq), bytes.fromhex(chain))


async def build_access(keeper: Keeper, journal: Journal, records: Records) -> Access:
    """The credentials, with the sign-ins of the previous daemon; sealed if no one can be taken for a person."""
    clients = [
        (record.sha256, Client(credential=record.id, name=record.name, workspace=record.workspace))
        for record in await records.credentials.all()
        if record.revoked_at is None
    ]
    sealed = SEALED_INSIDE if runs_inside_handrail() else explain_no_person()
    # A keeper met by a daemon that an agent started may be the agent's, with forged sign-ins.
    access = Access(journal, clients, b"" if sealed else await keeper.recall(SIGN_INS) or b"")
    access.sign_ins.keep = partial(_remember, keeper, SIGN_INS)
    if sealed:
        access.seal(sealed)
    return access


async def build_launchers(keeper: Keeper) -> DoorLaunchers:
    """The agents that launched doors, with those of the previous daemon."""
    launchers = DoorLaunchers(await keeper.recall(LAUNCHERS) or b"", lambda: keeper.pid)
    launchers.keep = partial(_remember, keeper, LAUNCHERS)
    return launchers


async def build_editors(
    keeper: Keeper, journal: Journal, access: Access, launchers: DoorLaunchers
) -> EditorPairings:
    """The paired editors, with those of the previous daemon; none if no one can be taken for a person."""
    kept = b"" if access.sealed else await keeper.recall(EDITORS) or b""
    editors = EditorPairings(journal, access, launchers, kept)
    editors.keep = partial(_remember, keeper, EDITORS)
    return editors


def build_devices(
    keeper: Keeper, places: Places, settings: DevicesSection, policy: AcceptedPolicy
) -> DeviceListener:
    """The listener for devices. They leave high risk to the desk also while no person accepted the settings."""

    def is_limited() -> bool:
        return settings.high_risk == "desk" or policy.holds_config

    devices = DeviceListener(keeper, places.tls, settings, is_limited)
    devices.keep = partial(_remember, keeper, DEVICES)
    return devices


async def build_client_sessions(keeper: Keeper, terminals: Terminals) -> ClientSessions:
    """The sessions of clients, with those of the previous daemon that still run."""
    sessions = ClientSessions(terminals, await keeper.recall(CLIENTS) or b"")
    sessions.keep = partial(_remember, keeper, CLIENTS)
    return sessions


def _remember(keeper: Keeper, key: str, value: bytes) -> None:
    keeper.post(Remember(keeper.number(), key, value))
