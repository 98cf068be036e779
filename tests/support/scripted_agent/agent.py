"""The methods of the Agent Client Protocol that the scripted agent serves."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.scripted_agent import CAPABILITIES, Behavior, Obj
from tests.support.scripted_agent.steps import Actor
from tests.support.scripted_agent.wire import Ended, Refused, Session, Wire


class Agent:
    """What this agent does for its client, a method for each of the protocol's."""

    def __init__(self, wire: Wire, manners: Behavior) -> None:
        self.wire, self.manners = wire, manners
        self.client: Any = None
        self.sessions: dict[str, Session] = {}
        self.logged_in = not manners.get("login_needed", False)
        self.modes = manners.get("modes")
        self.options = manners.get("options")
        self.models = manners.get("models")
        self.next_id = 0

    def number(self) -> Any:
        self.next_id += 1
        return str(uuid.uuid4()) if self.manners.get("ids") == "uuid" else self.next_id - 1

    def answer(self, **fields: Any) -> Obj:
        return {
            **{key: value for key, value in fields.items() if value is not None},
            **self.manners.get("extra", {}),
        }

    @property
    def settings(self) -> Obj:
        return {"modes": self.modes, "configOptions": self.options, "models": self.models}

    async def initialize(self, params: Obj) -> Obj:
        self.client = params
        return self.answer(
            protocolVersion=self.manners.get("protocol", 1),
            agentCapabilities=self.manners.get("capabilities", CAPABILITIES),
            agentInfo={
                "name": self.manners.get("calls_itself", "scripted"),
                "title": "The scripted agent",
                "version": self.manners.get("version", "1.2.3"),
            },
            authMethods=self.manners.get("logins", []),
            _meta={"steering": {"supported": True}} if self.manners.get("steers") else None,
        )

    async def authenticate(self, params: Obj) -> Obj:
        if self.manners.get("login_fails"):
            raise Refused({"code": -32603, "message": "The password is wrong", "data": params})
        self.logged_in = True
        return self.answer()

    async def new(self, params: Obj) -> Obj:
        if not self.logged_in:
            says = self.manners.get("login_says", "Authentication required")
            raise Refused({"code": -32000, "message": says})
        session = Session(f"session-{uuid.uuid4().hex[:8]}", params)
        self.sessions[session.id] = session
        await Actor(self, session).act(self.manners.get("at_new", ()))
        self.keep(session)
        if commands := self.manners.get("commands"):
            background(Actor(self, session).act([{"sleep": 0}, {"commands": commands}]))
        return self.answer(sessionId=session.id, **self.settings)

    async def load(self, params: Obj) -> Obj:
        session = self.recall(params)
        actor = Actor(self, session)
        for update in list(session.said):
            await actor.update({}, update)
        session.said = session.said[: len(session.said) // 2]  # the replay recorded them a second time
        await actor.act(self.manners.get("at_load", ()))
        return self.answer(**self.settings)

    async def resume(self, params: Obj) -> Obj:
        self.recall(params)
        return self.answer(**self.settings)

    async def fork(self, params: Obj) -> Obj:
        before = self.recall(params)
        session = Session(f"session-{uuid.uuid4().hex[:8]}", params)
        session.said = list(before.said)
        self.sessions[session.id] = session
        self.keep(session)
        return self.answer(sessionId=session.id, **self.settings)

    async def list(self, _: Obj) -> Obj:
        opened: Obj = {path.stem: json.loads(path.read_text())["opened"] for path in self.shelf()}
        opened |= {it.id: it.opened for it in self.sessions.values()}
        known = [{"sessionId": of, "cwd": it["cwd"], "title": f"about {of}"} for of, it in opened.items()]
        return self.answer(sessions=known)

    async def close(self, params: Obj) -> Obj:
        self.sessions.pop(params["sessionId"], None)
        return self.answer()

    async def delete(self, params: Obj) -> Obj:
        self.sessions.pop(params["sessionId"], None)
        for path in self.shelf():
            if path.stem == params["sessionId"]:
                path.unlink()
        return self.answer()

    async def set_mode(self, params: Obj) -> Obj:
        assert self.modes is not None
        self.modes = {**self.modes, "currentModeId": params["modeId"]}
        await Actor(self, self.sessions[params["sessionId"]]).act([{"mode": params["modeId"]}])
        return self.answer()

    async def set_option(self, params: Obj) -> Obj:
        chosen = {"currentValue": params["value"]}
        self.options = [
            {**it, **chosen} if it["id"] == params["configId"] else it for it in self.options or ()
        ]
        return self.answer(configOptions=self.options)

    async def set_model(self, params: Obj) -> Obj:
        self.models = {**(self.models or {}), "currentModelId": params["modelId"]}
        return self.answer()

    async def prompt(self, params: Obj) -> Obj:
        session = self.sessions[params["sessionId"]]
        session.prompt = params["prompt"]
        session.ignores_cancel, session.on_cancel, session.cancel_stop = False, [], "cancelled"
        session.waits_for_answers = False
        for block in session.prompt:
            session.said.append({"sessionUpdate": "user_message_chunk", "content": block})
        actor = Actor(self, session)
        session.running = asyncio.create_task(actor.act(steps_in(session.prompt)))
        try:
            await session.running
        except Ended as ended:
            return self.answer(**ended.answer)
        except asyncio.CancelledError:
            if session.waits_for_answers:
                await asyncio.gather(*actor.tasks.values())
            await actor.act(session.on_cancel)
            return self.answer(stopReason=session.cancel_stop)
        finally:
            session.running = None
            self.keep(session)
        return self.answer(stopReason="end_turn")

    def cancel(self, params: Obj) -> None:
        session = self.sessions.get(params["sessionId"])
        if session is not None and session.running is not None and not session.ignores_cancel:
            session.was_cancelled = True
            session.running.cancel()

    async def steer(self, params: Obj) -> Obj:
        session = self.sessions[params["sessionId"]]
        if session.running is None:
            assert params["_meta"]["steering"]["idleBehavior"] == "promptRequired"
            return self.answer(outcome="promptRequired", reason="noRunningTurn")
        for block in params["prompt"]:
            session.said.append({"sessionUpdate": "user_message_chunk", "content": block})
        session.steered.put_nowait("".join(block.get("text", "") for block in params["prompt"]))
        return self.answer(outcome="injected")

    async def cancel_activity(self, params: Obj) -> Obj:
        doing = self.sessions[params["sessionId"]].doing.get(params["activity"])
        if doing is not None:
            doing.set()
        return self.answer(cancelled=doing is not None)

    def recall(self, params: Obj) -> Session:
        wanted = params["sessionId"]
        if wanted not in self.sessions:
            found = [path for path in self.shelf() if path.stem == wanted]
            if not found:
                raise Refused({"code": -32002, "message": "Resource not found", "data": {"uri": wanted}})
            self.sessions[wanted] = Session(wanted, {})
            self.sessions[wanted].said = json.loads(found[0].read_text())["said"]
        self.sessions[wanted].opened = params
        return self.sessions[wanted]

    def shelf(self) -> Sequence[Path]:
        folder = self.manners.get("sessions")
        return sorted(Path(folder).glob("*.json")) if folder else ()

    def keep(self, session: Session) -> None:
        folder = self.manners.get("sessions")
        if folder:
            kept = {"opened": session.opened, "said": session.said}
            Path(folder, f"{session.id}.json").write_text(json.dumps(kept))


def steps_in(prompt: Sequence[Obj]) -> list[Obj]:
    texts = [block["text"] for block in prompt if block.get("type") == "text"]
    for text in reversed(texts):
        with contextlib.suppress(ValueError):
            steps = json.loads(text)
            if isinstance(steps, list):
                return steps  # pyright: ignore[reportUnknownVariableType]
    return [{"say": f"You said: {texts[-1] if texts else ''}"}]


TASKS: set[asyncio.Task[Any]] = set()


def background(work: Any) -> None:
    task = asyncio.ensure_future(work)
    TASKS.add(task)
    task.add_done_callback(TASKS.discard)
