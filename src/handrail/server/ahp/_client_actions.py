"""What clients do: their actions on sessions, chats and terminals, carried out or rejected with a reason.

An action is published to all subscribers once it is carried out. Answers, and input and size of terminals, are accepted
only from an editor that a person has paired.
"""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import cast

import anyio
from fastapi import HTTPException

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.conversation.send_prompt import PromptPart
from handrail.errors import Conflict, Unwritable
from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call
from handrail.gate.rules.rule_builder import BadRule
from handrail.gate.tool import Refusal
from handrail.server.ahp.ahp_host import AhpHost
from handrail.server.ahp.ahp_sessions import Session
from handrail.server.ahp.ahp_wire import Obj, Rejected, RpcError, path_of_uri
from handrail.server.ahp.call_cards import DENY, ONCE
from handrail.server.ahp.channels import Origin, Subscriber
from handrail.server.ahp.chats import Chat
from handrail.server.ahp.forms import values_of_answers
from handrail.server.ahp.peer import Peer
from handrail.server.ahp.turns import PendingKind
from handrail.server.api.threads import resolve_files
from handrail.store.actor import EDITOR, Actor
from handrail.store.values import FormPreview, Json
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminal import InputSender, Terminal, TypingRefused

BEGIN_SECONDS = 30.0
"""How long a prompt waits for a cancelled one to unwind."""
PIECE = 32 * 1024
"""Bytes of terminal input written at a time."""
MOST_ACTIVE, ACTION_MAX = 32, 256 * 1024
"""Active clients of one session, and characters of what clients publish in a session or chat: bounds memory."""
MOST_EXPLAINED = 20
"""Reasons that are remembered as shown: bounds memory."""
MOST_SIZES = 100
"""Terminals whose size in this client is remembered: bounds memory."""
UNPAIRED = Actor("named", "an editor")
"""A client that is not paired: it may prompt and stop."""
BUSY = "The agent is working on another prompt. Send yours again: it will wait for the end of that one."
STALE = "This question is no longer open."
NO_TRUNCATION = "Handrail keeps threads as they are. To go back, fork the thread on Handrail's page."

_FAILURES = (AgentError, BadRule, Conflict, KeeperError, LookupError, Refusal, TypingRefused)
_ANSWERS = ("chat/toolCallConfirmed", "chat/inputCompleted")
Handler = Callable[[Obj], Awaitable[None]]


class ClientActions:
    """The actions of one connection."""

    def __init__(self, host: AhpHost, peer: Peer, subscriber: Subscriber) -> None:
        self._host = host
        self._peer = peer
        self._subscriber = subscriber
        self._explained: list[tuple[str, str]] = []
        self._sizes: dict[str, tuple[int, int]] = {}
        self._uri = ""
        self._origin = Origin(client="", number=0)
        self._handlers: dict[str, Handler] = {
            "root/configChanged": self._echo,
            "session/activeClientSet": self._publish_in_session,
            "session/configChanged": self._publish_in_session,
            "session/titleChanged": self._rename,
            "session/isReadChanged": self._flag,
            "session/isArchivedChanged": self._flag,
            "chat/turnStarted": self._start_turn,
            "chat/turnCancelled": self._cancel_turn,
            "chat/toolCallConfirmed": self._confirm_call,
            "chat/inputCompleted": self._complete_input,
            "chat/inputAnswerChanged": self._publish_in_chat,
            "chat/draftChanged": self._publish_in_chat,
            "chat/pendingMessageSet": self._queue_prompt,
            "chat/pendingMessageRemoved": self._drop_prompt,
            "terminal/input": self._type,
            "terminal/resized": self._resize,
            "terminal/claimed": self._claim,
        }

    async def dispatch(self, uri: str, action: Obj, origin: Origin) -> None:
        """Carry out an action, or reject it."""
        self._uri, self._origin = uri, origin
        try:
            await self._run(action)
        except (KeyError, TypeError, ValueError, AttributeError):
            self._reject(action, "This action is malformed.")
        except HTTPException as problem:
            self._reject(action, str(problem.detail))
        except (TimeoutError, Unwritable) as problem:
            self._reject(action, str(problem) or "The agent does not stop its earlier work. Try again.")
        except (Rejected, RpcError, *_FAILURES) as problem:
            self._reject(action, str(problem))

    def _reject(self, action: Obj, reason: str) -> None:
        channels = self._host.channels
        channels.reject(self._uri, action, self._origin, reason, self._subscriber)
        channel = channels.get(self._uri)
        if channel is not None and action.get("type") in _ANSWERS:
            self._explain(channel.state.get("activeTurn"), reason)

    def _explain(self, turn: Obj | None, reason: str) -> None:
        """Show the reason in the running turn, once, since VS Code does not.

        Only this client gets it, and no state holds it: it may name the number by which a person pairs this very process,
        and must not appear in the window of another one.
        """
        if turn is None or (turn["id"], reason) in self._explained:
            return
        self._explained = [*self._explained[-MOST_EXPLAINED:], (turn["id"], reason)]
        name = f"note-{sha256(reason.encode()).hexdigest()[:16]}"
        part = {"kind": "markdown", "id": name, "content": f"> {reason}\n\n"}
        note: Obj = {"type": "chat/responsePart", "turnId": turn["id"], "part": part}
        self._host.channels.tell(self._uri, note, self._subscriber)

    async def _run(self, action: Obj) -> None:
        kind = action.get("type")
        if kind == "chat/truncated":
            raise Rejected(NO_TRUNCATION)
        handler = self._handlers.get(cast("str", kind))
        if handler is None:
            raise Rejected(f"Handrail does not take {kind!r:.100} from a client.")
        await handler(action)

    def _accept(self, action: Obj) -> None:
        """Publish the client's own action."""
        if self._host.channels.get(self._uri) is None:
            self._host.channels.echo(self._uri, action, self._origin, self._subscriber)
        else:
            self._host.channels.publish(self._uri, action, self._origin, self._subscriber)

    def _require_person(self) -> Actor:
        """The person at the paired editor. Raises Rejected."""
        standing = self._peer.standing
        if not standing.decides:
            raise Rejected(standing.why)
        return EDITOR

    @property
    def _actor(self) -> Actor:
        return EDITOR if self._peer.standing.decides else UNPAIRED

    async def _echo(self, action: Obj) -> None:
        self._host.channels.echo(self._uri, action, self._origin, self._subscriber)

    # Sessions

    async def _publish_in_session(self, action: Obj) -> None:
        client: Obj = action.get("activeClient") or {}
        if client and client["clientId"] != self._origin.client:
            raise Rejected("A client can only announce itself.")
        await self._host.find_session(self._uri)
        self._require_room(action)
        self._accept(action)
        self._drop_oldest_clients()

    def _require_room(self, action: Obj) -> None:
        """Reject an action that is too long, or after which the state would hold too much of what clients published."""
        channel = self._host.channels.get(self._uri)
        held = None if channel is None else _published(channel.reduce(channel.state, action))
        if len(str(action)) > ACTION_MAX or len(str(held)) > ACTION_MAX:
            raise Rejected(f"What clients publish here is longer than {ACTION_MAX:,} characters.")

    def _drop_oldest_clients(self) -> None:
        """Remove the active clients of a session above the most. One that vanishes does not remove itself."""
        channel = self._host.channels.get(self._uri)
        clients: list[Obj] = [] if channel is None else channel.state["activeClients"]
        for client in clients[: max(0, len(clients) - MOST_ACTIVE)]:
            removal: Obj = {"type": "session/activeClientRemoved", "clientId": client["clientId"]}
            self._host.channels.publish(self._uri, removal)

    async def _rename(self, action: Obj) -> None:
        session = await self._host.find_session(self._uri)
        title = str(action["title"]).strip()[:500]
        if session.thread is None or not title:
            raise Rejected("There is nothing to rename yet.")
        self._host.context.threads.rename(session.thread, title, self._actor)
        self._accept(action)

    async def _flag(self, action: Obj) -> None:
        session = await self._host.find_session(self._uri)
        if action["type"] == "session/isReadChanged":
            session.is_read = bool(action["isRead"])
        else:
            session.is_archived = bool(action["isArchived"])
        self._host.sessions.store(session)
        self._accept(action)
        if session.thread is not None:
            changes = {"session": session.uri, "changes": {"status": session.status}}
            self._host.channels.notify("root/sessionSummaryChanged", changes)

    # Prompts

    async def _get_chat(self) -> Chat:
        return await self._host.chat(await self._host.find_session(self._uri))

    async def _publish_in_chat(self, action: Obj) -> None:
        await self._get_chat()
        self._require_room(action)
        self._accept(action)

    async def _start_turn(self, action: Obj) -> None:
        chat = await self._get_chat()
        turn = str(action["turnId"])
        async with chat.lock:
            if _knows_turn(chat.state, turn):
                raise Rejected("This prompt was sent before.")
            if chat.state.get("activeTurn") is not None:
                raise Rejected(BUSY)
            pieces = await _prompt_pieces(action["message"], chat.session.workspace)
            thread = self._open_thread(chat.session)
            with anyio.fail_after(BEGIN_SECONDS):
                receipt = await self._host.context.prompts.prompt(thread, pieces, by=self._actor)
            chat.session.turn_ids[receipt.message] = turn
            self._accept(action)
        await self._begin_thread(chat)

    def _open_thread(self, session: Session) -> str:
        """The session's thread, which is opened with its first prompt."""
        if session.thread is None:
            threads = self._host.context.threads
            thread = threads.open(workspace=session.workspace, title="", agent=session.agent, by=self._actor)
            self._host.sessions.bind(session, thread)
        assert session.thread is not None
        return session.thread

    async def _begin_thread(self, chat: Chat) -> None:
        """Store the session with its thread, announce a new one, and follow it."""
        session = chat.session
        self._host.sessions.store(session)
        await self._host.context.threads.written()
        if not chat.is_followed:
            await self._host.sessions.refresh(cast("str", session.thread))
            self._host.sessions.announce(session)
            self._host.follow_chat(chat)
            self._host.publish_session(session)

    async def _cancel_turn(self, action: Obj) -> None:
        chat = await self._get_chat()
        async with chat.lock:
            turn: Obj | None = chat.state.get("activeTurn")
            if turn is None or turn["id"] != action["turnId"]:
                raise Rejected("This prompt is not running any more.")
            running = self._host.context.prompts.running(chat.session.thread or "")
            operation = self._host.context.gate.operations.get(running or "")
            if operation is not None:
                operation.cancel(self._actor)
            self._accept(action)
            chat.publish_needed()

    async def _queue_prompt(self, action: Obj) -> None:
        chat = await self._get_chat()
        kind: PendingKind = "steering" if action["kind"] == "steering" else "queued"
        thread = chat.session.thread
        if thread is None:
            raise Rejected("No prompt is running, so there is nothing to wait for.")
        async with chat.lock:
            self._drop_earlier(chat, thread, str(action["id"]))
            pieces = await _prompt_pieces(action["message"], chat.session.workspace)
            prompts = self._host.context.prompts
            with anyio.fail_after(BEGIN_SECONDS):
                receipt = await prompts.prompt(
                    thread, pieces, by=self._actor, queue=True, steer=kind == "steering"
                )
            chat.pending[receipt.message] = str(action["id"]), kind
            self._accept(action)

    async def _drop_prompt(self, action: Obj) -> None:
        chat = await self._get_chat()
        thread = chat.session.thread
        async with chat.lock:
            if thread is None or not self._drop_earlier(chat, thread, str(action["id"])):
                raise Rejected("This prompt is not waiting any more.")
            self._accept(action)

    def _drop_earlier(self, chat: Chat, thread: str, id: str) -> bool:
        """Drop the waiting prompt with this id of a client, or of ours."""
        named = [message for message, (given, _) in chat.pending.items() if given == id]
        waiting = {message.id for message in self._host.context.threads.queued(thread)}
        found = [message for message in (*named, id) if message in waiting]
        for message in found[:1]:
            chat.pending.pop(message, None)
            self._host.context.prompts.drop(thread, message, by=self._actor)
        return bool(found)

    # Answers

    async def _confirm_call(self, action: Obj) -> None:
        person = self._require_person()
        chat = await self._get_chat()
        async with chat.lock:
            shown = _find_shown(chat.state, str(action["toolCallId"]))
            call, approval = self._find_question(shown["_meta"].get("handrail/call"))
            if action.get("editedToolInput") is not None:
                raise Rejected("Edit the call on Handrail's page.")
            answer = self._build_answer(action, call, approval, person)
            digest = str(shown["_meta"].get("handrail/digest"))
            await person_actions.answer(self._host.context.gate, approval, answer, digest)
            await self._host.context.journal.committed(self._host.context.journal.head)
            self._accept(action)
            chat.publish_needed()

    def _find_question(self, id: object) -> tuple[Call, Approval]:
        call = self._host.context.gate.open.get(cast("str", id))
        if call is None or call.approval is None:
            raise Rejected(STALE)
        if not call.approval.open:
            raise Rejected(call.approval.closed())
        return call, call.approval

    def _build_answer(self, action: Obj, call: Call, approval: Approval, person: Actor) -> Answer:
        option = str(action.get("selectedOptionId") or ONCE)  # the card of a diff has a plain button
        if not action["approved"]:
            return Answer(kind="deny", by=person, reason=str(action.get("reasonMessage") or ""))
        offered = {one["id"] for one in self._host.cards.question(call, approval).options}
        if option == DENY or option not in offered:
            raise Rejected("Choose one of the options of the question.")
        rules = self._host.cards.rules_of_option(call, approval, option)
        return Answer(kind="allow", by=person, rules=rules)

    async def _complete_input(self, action: Obj) -> None:
        person = self._require_person()
        chat = await self._get_chat()
        gate = self._host.context.gate
        async with chat.lock:
            call, approval = self._find_question(action["requestId"])
            preview = approval.asked.preview
            if action["response"] != "accept" or not isinstance(preview, FormPreview):
                answer, digest = Answer(kind="deny", by=person), approval.digest
            else:
                values = values_of_answers(preview.schema, action.get("answers") or {})
                filled: Json = {**call.input, "values": values}
                digest = (await person_actions.edit(gate, call, filled)).digest
                answer = Answer(kind="allow", by=person, input=filled)
            await person_actions.answer(gate, approval, answer, digest)
            await self._host.context.journal.committed(self._host.context.journal.head)
            self._accept(action)
            chat.publish_needed()

    # Terminals

    def _find_terminal(self) -> Terminal:
        live = self._host.terminals.find(self._uri)
        if live.exit is not None:
            raise Rejected("The terminal has ended.")
        return live

    async def _type(self, action: Obj) -> None:
        person = self._require_person()
        live = self._find_terminal()
        keys = str(action["data"]).encode(errors="surrogatepass")
        for at in range(0, len(keys), PIECE):
            await live.type(keys[at : at + PIECE], InputSender(person=True, name=str(person)))
        owners, size = self._host.context.size_owners, self._sizes.get(self._uri)
        was_owner = owners.is_owner(live.id, self._subscriber)
        owners.claim(live.id, self._subscriber)
        if size is not None and not was_owner and not live.attached:
            await live.resize(*size)
        self._host.channels.echo(self._uri, action, self._origin, self._subscriber)

    async def _resize(self, action: Obj) -> None:
        """Take the size of a terminal in which this client has typed. VS Code sends one with each look, too: that of a card
        would make a program of the agent draw anew."""
        self._require_person()
        live, size = self._find_terminal(), (int(action["cols"]), int(action["rows"]))
        owners = self._host.context.size_owners
        is_owner = self._host.terminals.is_own(self._uri) or owners.is_owner(live.id, self._subscriber)
        self._remember_size(size)
        if live.attached or not is_owner:
            raise Rejected("This terminal has the size of another window until you type here.")
        await live.resize(*size)
        self._accept(action)

    def _remember_size(self, size: tuple[int, int]) -> None:
        """Keep the size of a terminal in this client, which it gets whenever its person begins to type there."""
        self._sizes[self._uri] = size
        if len(self._sizes) > MOST_SIZES:
            del self._sizes[next(iter(self._sizes))]

    async def _claim(self, action: Obj) -> None:
        """A claim of the session without its call completes that call: the terminal goes on in the background."""
        person = self._require_person()
        live = self._find_terminal()
        claim: Obj = action["claim"]
        if claim["kind"] != "session" or claim.get("toolCallId") is not None:
            raise Rejected("The claim of this terminal cannot be changed in this way.")
        gate = self._host.context.gate
        call = gate.open.get(live.note.call or "")
        if call is None or not person_actions.complete(gate, call, person):
            raise Rejected("The call of this terminal has ended.")
        await self._host.context.journal.committed(self._host.context.journal.head)
        self._accept(action)


def _knows_turn(state: Obj, turn: str) -> bool:
    active: Obj = state.get("activeTurn") or {}
    return active.get("id") == turn or any(one["id"] == turn for one in state["turns"])


def _published(state: Obj) -> list[object]:
    """What a state holds that any client can add to: the draft and the unsent answers of a chat."""
    turn: Obj = state.get("activeTurn") or {"responseParts": []}
    requests: list[Obj] = [part["request"] for part in turn["responseParts"] if part.get("request")]
    return [state.get("draft"), [request.get("answers") for request in requests]]


def _find_shown(state: Obj, id: str) -> Obj:
    """The tool call of the running turn that waits for an answer. Raises Rejected."""
    turn: Obj = state.get("activeTurn") or {"responseParts": []}
    for part in turn["responseParts"]:
        call: Obj = part.get("toolCall") or {}
        if call.get("toolCallId") == id and call["status"] == "pending-confirmation":
            return call
    raise Rejected(STALE)


async def _prompt_pieces(message: Obj, workspace: str | None) -> list[PromptPart]:
    """The pieces of a prompt: its text, and the files that are attached to it."""
    text = str(message.get("text") or "")
    attached: list[Obj] = message.get("attachments") or []
    paths = [path_of_uri(str(one.get("uri"))) for one in attached if one.get("type") == "resource"]
    files: list[PromptPart] = []
    for path in filter(None, paths):
        try:
            [file] = await resolve_files([path], workspace)
        except HTTPException:  # VS Code attaches what is open, which need not be a file
            continue
        files.append(PromptPart(kind="file", data={"uri": file.as_uri(), "name": file.name}))
    if not text.strip() and not files:
        raise Rejected("There is nothing in this prompt.")
    return [PromptPart(kind="text", text=text), *files] if text.strip() else files
