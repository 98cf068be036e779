"""Domain into wire: how conversations, agents and what was found look to people's programs.

Pure translations. What runs for a thread comes from whoever runs it, which knows more than the disk.
"""

from dataclasses import asdict

from handrail.agents.program.agent import Agent
from handrail.agents.registry.registry import Found
from handrail.server.access import Person
from handrail.server.thread_wire import (
    AgentView,
    LoginView,
    MessageView,
    SearchView,
    ThreadDetail,
    ThreadFlow,
    ThreadPage,
    ThreadView,
)
from handrail.store.index import Hits
from handrail.store.thread import follow
from handrail.store.thread.record import MessageRecord, Page, Snapshot, ThreadRecord


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


def flow_view(flow: follow.Flow) -> ThreadFlow:
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
