"""The wire of conversations and agents: what the page, the command line and scripts read and send about them.

Owns the JSON shapes of `/api/threads`, `/api/agents` and `/api/search`. It does not know routes or what agents speak.

Domain into wire: how conversations, agents and what was found look to people's programs.
"""

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from handrail.agents.acp.agent import Agent
from handrail.agents.conversation.session_state import Commands, Modes, Options, Usage
from handrail.agents.registry import Found
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
    """Something that was said."""

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
    """A conversation in a list."""

    id: str
    title: str
    workspace: str | None
    agent: str
    created_at: int
    updated_at: int
    messages: int
    operation: str | None
    """The work that runs for it now."""
    queued: int
    """Prompts that wait for their turn."""
    forked_from: str | None
    stop: Stop | None
    """How its last message ended; None while it is being said, and of an empty one."""


class ThreadDetail(ThreadView):
    """A conversation, opened: its newest messages, oldest of them first."""

    rev: int
    """Follow from here: the live socket sends what is newer."""
    said: list[MessageView]
    more: bool
    """There are older ones: ask with `before`, the first one's `n`."""
    state: dict[str, Json]
    """What the agent said of it as a whole: modes, options, commands, usage."""


class ThreadPage(Wire):
    """Older messages of a conversation."""

    said: list[MessageView]
    more: bool


class ThreadBody(Wire):
    """A conversation to begin."""

    workspace: Annotated[str | None, Field(max_length=4096)] = None
    title: Title = ""
    agent: AgentName | None = None
    """The one used last, unless it is named."""


class DefaultBody(Wire):
    """Whose conversation to go on with: the one of a workspace that was updated last, or a new one."""

    workspace: Annotated[str | None, Field(max_length=4096)] = None
    """None: the newest of all."""
    agent: AgentName | None = None
    """For a new one."""


class RenameBody(Wire):
    """Another title."""

    title: Annotated[Title, Field(min_length=1)]


class ImageBody(Wire):
    """A picture that goes with a prompt."""

    mime: Annotated[str, Field(pattern=r"^image/(png|jpeg|gif|webp)$")]
    data: Annotated[str, Field(max_length=8_000_000)]
    """Base64."""


class PromptBody(Wire):
    """What a person says."""

    text: Annotated[str, Field(max_length=LONGEST_PROMPT)]
    agent: AgentName | None = None
    """The thread's own, unless it is named."""
    files: Annotated[tuple[str, ...], Field(max_length=50)] = ()
    """Paths the agent is pointed to, relative to the workspace."""
    images: Annotated[tuple[ImageBody, ...], Field(max_length=10)] = ()
    queue: bool = False
    """Wait for the work that runs, instead of replacing it."""
    env: Annotated[Keys | None, Field(max_length=20)] = None
    """Keys and addresses of models, for our own agent on this thread alone: kept in memory, and nowhere else. Names are
    those of the providers' own variables; where none is given, those given before hold."""


class Prompted(Wire):
    """What became of a prompt."""

    thread: str
    message: str
    operation: str | None
    """None while it is queued."""
    replaced: str | None = None
    """The operation that was cancelled for it."""


class ForkBody(Wire):
    """Where a conversation shall branch off."""

    message: str
    before: bool = False
    """Leave that message itself out, to say it another way."""
    title: Title = ""


class SettingBody(Wire):
    """A mode, or an option, to choose for a conversation."""

    setting: Literal["mode", "option"]
    id: Annotated[str, Field(max_length=200)] = ""
    """Of the option."""
    value: Annotated[str | bool, Field()]


class ThreadFlow(Wire):
    """What a thread's live socket sends: what is new since what was sent last, put together."""

    rev: int
    messages: list[MessageView]
    """Those that began, ended, or moved to another place; without their parts."""
    parts: tuple[Growth, ...]
    state: dict[str, Json]
    dropped: list[str]
    """Messages that are no more: prompts that were taken back."""
    reset: bool
    """These are the newest messages, whole: what was sent before, or came with a snapshot, is void."""


class LoginView(Wire):
    """A way to log in to an agent."""

    id: str
    name: str
    description: str
    command: str | None = None
    """To be run in a terminal, where the agent cannot do it by itself."""


class AgentView(Wire):
    """An agent: installed, or how to install it."""

    name: str
    title: str
    found: bool
    version: str | None
    command: tuple[str, ...]
    source: Literal["config", "known", "built in"]
    why: str
    """What is missing; empty when nothing is."""
    install: str | None
    """The command that installs it."""
    running: bool
    logins: list[LoginView]


class LoginBody(Wire):
    """Log in to an agent."""

    method: Annotated[str, Field(min_length=1, max_length=200)]


class SearchView(Wire):
    """What was found, best first."""

    hits: tuple[SearchHit, ...]
    more: bool


FLOW_SHAPES = (
    *(ThreadFlow,),
    *(CallData, PlanData, ImageData, FileData, ErrorData, RawData),
    *(Modes, Options, Commands, Usage),
)
"""What no route returns or takes, for the description: what the live socket says, and what parts and state hold."""


def thread_view(record: ThreadRecord, operation: str | None, queued: int) -> ThreadView:
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
    )


def thread_detail(view: ThreadView, found: Snapshot) -> ThreadDetail:
    said = [message_view(message) for message in found.messages]
    stop = next((message.stop for message in reversed(said) if not message.queued), view.stop)
    known = view.model_copy(update={"stop": stop})
    return ThreadDetail(**known.__dict__, rev=found.rev, said=said, more=found.more, state=found.state)


def page_view(page: Page) -> ThreadPage:
    return ThreadPage(said=[message_view(message) for message in page.messages], more=page.more)


def message_view(message: MessageRecord) -> MessageView:
    # Made without checks: a long conversation is thousands of these, and they were checked when they were made.
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


def flow_view(flow: live_thread.Flow) -> ThreadFlow:
    return ThreadFlow.model_construct(
        rev=flow.rev,
        messages=[message_view(message) for message in flow.messages],
        parts=flow.growths,
        state=flow.state,
        dropped=list(flow.dropped),
        reset=flow.reset,
    )


def agent_view(found: Found, agent: Agent | None, person: Person) -> AgentView:
    """An agent in the list; one that runs says itself how to log in.

    Its command line, which may hold a secret, is shown to nobody who is not taken for a person.
    """
    logins = agent.about.logins if agent and person.approves else ()
    return AgentView(
        name=found.name,
        title=found.title,
        found=found.found,
        version=found.version or (agent and agent.about.version) or None,
        command=found.command if person.approves else (),
        source=found.source,
        why=found.why,
        install=found.install,
        running=agent is not None,
        logins=[LoginView(**asdict(login)) for login in logins],
    )


def search_view(found: Hits) -> SearchView:
    return SearchView(hits=found.hits, more=found.more)
