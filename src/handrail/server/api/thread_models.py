"""JSON models of threads, prompts, agents and search, and the conversion to them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.session_list import ListedSession
from handrail.agents.conversation.agent_sessions import Origin
from handrail.agents.conversation.session_modes import Asking, Asks, add_asking, find_asking
from handrail.agents.conversation.session_state import Commands, Modes, Options, Speaker, Usage
from handrail.agents.registry import ListedAgent
from handrail.server.access import Person
from handrail.server.api.models import Wire
from handrail.store.search_index import Hits, SearchHit
from handrail.store.threads import live_thread
from handrail.store.threads.live_thread import Growth
from handrail.store.threads.parts import CallData, ErrorData, FileData, ImageData, PlanData, RawData
from handrail.store.threads.thread_records import MessagePart, MessageRecord, Page, Snapshot, ThreadRecord
from handrail.store.values import Json, Role, Stop

Title = Annotated[str, Field(max_length=200)]
AgentName = Annotated[str, Field(min_length=1, max_length=100)]
LONGEST_PROMPT = 1_000_000
Keys = dict[str, SecretStr]


class MessageView(Wire):
    """One message of a thread."""

    id: str
    n: int
    role: Role
    agent: str
    operation: str | None
    queued: bool
    opened_at: int
    ended_at: int | None
    stop: Stop | None
    parts: tuple[MessagePart, ...]


class ThreadView(Wire):
    """A thread in a list."""

    id: str
    title: str
    workspace: str | None
    agent: str
    created_at: int
    updated_at: int
    messages: int
    operation: str | None
    """The running operation, or None."""
    queued: int
    """Number of queued prompts."""
    forked_from: str | None
    stop: Stop | None
    """How the last message ended. None while it streams, and for an empty thread."""
    asks: Asks | None = None
    """What the agent asks about in its present mode. None if that is not known."""


class ThreadDetail(ThreadView):
    """A thread with its newest messages, in chronological order."""

    rev: int
    """Revision of this snapshot. Pass it as `after` to the live socket."""
    said: list[MessageView]
    more: bool
    """There are older messages. Pass the first message's `n` as `before`."""
    state: dict[str, Json]
    """The agent's session state: modes, options, commands, usage; and `asking`, which is derived from the modes."""


class ThreadPage(Wire):
    """A page of older messages."""

    said: list[MessageView]
    more: bool


class ThreadBody(Wire):
    """A thread to create."""

    workspace: Annotated[str | None, Field(max_length=4096)] = None
    title: Title = ""
    agent: AgentName | None = None
    """Default: the agent used last."""


class DefaultBody(Wire):
    """Selects the thread to continue: the last one updated in a workspace, or a new one."""

    workspace: Annotated[str | None, Field(max_length=4096)] = None
    """None selects from all threads."""
    agent: AgentName | None = None
    """The agent of a new thread."""


class RenameBody(Wire):
    """A new title."""

    title: Annotated[Title, Field(min_length=1)]


class ImageBody(Wire):
    """An image in a prompt."""

    mime: Annotated[str, Field(pattern=r"^image/(png|jpeg|gif|webp)$")]
    data: Annotated[str, Field(max_length=8_000_000)]
    """Base64."""


class PromptBody(Wire):
    """A prompt from a person."""

    text: Annotated[str, Field(max_length=LONGEST_PROMPT)]
    agent: AgentName | None = None
    """Default: the thread's agent."""
    files: Annotated[tuple[str, ...], Field(max_length=50)] = ()
    """Files to attach, relative to the workspace."""
    images: Annotated[tuple[ImageBody, ...], Field(max_length=10)] = ()
    queue: bool = False
    """Queue after the running operation, instead of cancelling it."""
    steer: bool = False
    """Give it to the agent while it works, in the running operation. If the agent cannot take it, queue it."""
    env: Annotated[Keys | None, Field(max_length=20)] = None
    """API keys and base URLs for Handrail's own agent on this thread, named like the providers' variables. Held in
    memory only. If omitted, earlier values stay in force."""


class Prompted(Wire):
    """The result of sending a prompt."""

    thread: str
    message: str
    operation: str | None
    """None while it is queued."""
    replaced: str | None = None
    """The operation that it cancelled."""
    steered: bool = False
    """The agent took it while it worked; `operation` is the one that runs."""


class ForkBody(Wire):
    """The message at which to fork a thread."""

    message: str | None = None
    """The last message of the fork. Default: all that was said."""
    before: bool = False
    """Leave out that message, to write it differently."""
    title: Title = ""


class SettingBody(Wire):
    """A mode or option to set for a thread."""

    setting: Literal["mode", "option"]
    id: Annotated[str, Field(max_length=200)] = ""
    """The option's id."""
    value: Annotated[str | bool, Field()]


class ThreadFlow(Wire):
    """Message of a thread's live socket: all changes since the previous message, merged."""

    rev: int
    messages: list[MessageView]
    """Messages that started, ended or moved; without parts."""
    parts: tuple[Growth, ...]
    state: dict[str, Json]
    dropped: list[str]
    """Ids of removed messages: queued prompts that were withdrawn."""
    reset: bool
    """These are the newest messages, complete. Discard everything received before."""


class LoginView(Wire):
    """A way to log in to an agent."""

    id: str
    name: str
    description: str
    command: str | None = None
    """A command to run in a terminal, if the agent cannot log in without one."""


class AgentView(Wire):
    """An agent, and how to install it if it is missing."""

    name: str
    title: str
    found: bool
    version: str | None
    command: tuple[str, ...]
    source: Literal["config", "known", "built in"]
    why: str
    """Why it cannot be used; else empty."""
    install: str | None
    """The command that installs it."""
    manager: Literal["npm", "uv"] | None
    """The package manager that installs it, and the name of its package there; null if not known."""
    package: str | None
    running: bool
    logins: list[LoginView]


class AgentSessionView(Wire):
    """A session that an agent has kept."""

    id: str
    folder: str
    title: str
    updated_at: int | None
    """Null if the agent does not say."""
    thread: str | None
    """The thread that continues it, if there is one."""


class AdoptBody(Wire):
    """A session of an agent, to be continued as a thread."""

    session: Annotated[str, Field(min_length=1, max_length=1000)]
    workspace: Annotated[str | None, Field(max_length=4096)] = None
    """The folder in which the agent is asked for its sessions."""


class LoginBody(Wire):
    """Log in to an agent."""

    method: Annotated[str, Field(min_length=1, max_length=200)]


class SearchView(Wire):
    """Search results, best first."""

    hits: tuple[SearchHit, ...]
    more: bool


FLOW_SHAPES = (
    *(ThreadFlow,),
    *(CallData, PlanData, ImageData, FileData, ErrorData, RawData),
    *(Speaker, Modes, Options, Commands, Usage, Asking, Origin),
)
"""Models that no route uses, to be added to the OpenAPI document: live messages, message parts, session state."""


ASKING_STATE = ("agent", "modes", "options")
"""The state from which `asks` is derived."""


def speaker_of(state: Mapping[str, Json], default: str) -> str:
    """The agent whose state the thread shows."""
    name = state.get("agent", {}).get("name")
    return name if isinstance(name, str) and name else default


def thread_view(
    record: ThreadRecord, operation: str | None, queued: int, state: Mapping[str, Json]
) -> ThreadView:
    asking = find_asking(speaker_of(state, record.agent), state)
    return ThreadView(
        id=record.id,
        title=record.title,
        workspace=record.workspace,
        agent=record.agent,
        created_at=record.created_at,
        updated_at=record.updated_at,
        messages=record.messages,
        operation=operation,
        queued=queued,
        forked_from=record.forked_from,
        stop=record.stop,
        asks=asking and asking["asks"],
    )


def thread_detail(view: ThreadView, snapshot: Snapshot) -> ThreadDetail:
    messages = [message_view(message) for message in snapshot.messages]
    stop = next((message.stop for message in reversed(messages) if not message.queued), view.stop)
    current = view.model_copy(update={"stop": stop})
    return ThreadDetail(
        **current.__dict__,
        rev=snapshot.rev,
        said=messages,
        more=snapshot.more,
        state=add_asking(speaker_of(snapshot.state, view.agent), snapshot.state),
    )


def page_view(page: Page) -> ThreadPage:
    return ThreadPage(said=[message_view(message) for message in page.messages], more=page.more)


def message_view(message: MessageRecord) -> MessageView:
    # Skip validation: a long thread has thousands of messages, and the records are already valid.
    return MessageView.model_construct(
        id=message.id,
        n=message.n,
        role=message.role,
        agent=message.agent,
        operation=message.operation,
        queued=message.queued,
        opened_at=message.opened_at,
        ended_at=message.ended_at,
        stop=message.stop,
        parts=message.parts,
    )


def flow_view(flow: live_thread.ThreadChanges, speaker: str) -> ThreadFlow:
    return ThreadFlow.model_construct(
        rev=flow.rev,
        messages=[message_view(message) for message in flow.messages],
        parts=flow.growths,
        state=add_asking(speaker, flow.state),
        dropped=list(flow.dropped),
        reset=flow.reset,
    )


def agent_view(entry: ListedAgent, agent: Agent | None, person: Person) -> AgentView:
    """An agent in the list. Login methods are known only while it runs.

    The command line may contain a secret, so only a person with `approves` sees it.
    """
    logins = agent.about.logins if agent and person.approves else ()
    return AgentView(
        name=entry.name,
        title=entry.title,
        found=entry.found,
        version=entry.version or (agent and agent.about.version) or None,
        command=entry.command if person.approves else (),
        source=entry.source,
        why=entry.why,
        install=entry.install,
        manager=entry.manager,
        package=entry.package,
        running=agent is not None,
        logins=[LoginView(**asdict(login)) for login in logins],
    )


def agent_session_view(session: ListedSession, thread: str | None) -> AgentSessionView:
    return AgentSessionView(
        id=session.id,
        folder=session.cwd,
        title=session.title,
        updated_at=session.updated_at,
        thread=thread,
    )


def search_view(hits: Hits) -> SearchView:
    return SearchView(hits=hits.hits, more=hits.more)
