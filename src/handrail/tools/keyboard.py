"""send_to_terminal: what an agent types, and into what.

Owns the bytes that are typed and what an approval of them is bound to. It does not decide who has the terminal
(terminal.py), and names no keys itself (keys.py).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.gate.tool import Plan, Refusal, Tool
from handrail.store.event import Caller, Claim, InputPreview, Json, Result
from handrail.terminal.keeper import KeeperError
from handrail.terminal.keys import UnknownKey, encode
from handrail.terminal.screen import render
from handrail.terminal.terminal import Seen, Terminal, TypingRefused, Typist
from handrail.tools.answer import Format, Input, answer, brief
from handrail.tools.known import Known, ended, is_inside, is_own
from handrail.tools.reach import Reach

if TYPE_CHECKING:
    from handrail.gate.call import Call

MOST_TYPED = 65_536
"""Bytes typed at once: more waits unread in most programs, and nobody could read it in an approval."""


class SendToTerminalInput(Input):
    terminalId: Annotated[str, Field(description="As list_tracked_terminals names it.")]  # noqa: N815
    text: Annotated[
        str, Field(description="What to type, as from a keyboard. A line break in it is the Enter key.")
    ] = ""
    addNewline: Annotated[  # noqa: N815
        bool | None,
        Field(description="Press Enter after the text: true unless `keys` are given."),
    ] = None
    keys: Annotated[
        list[str],
        Field(
            max_length=200,
            description="Keys to press after the text, by name: enter, tab, escape, up, page-down, f5, ctrl-c, alt-x …",
        ),
    ] = Field(default_factory=list)
    response_format: Format = "text"


class SendToTerminalOutput(BaseModel):
    terminal_id: str | None = None
    typed: str | None = Field(None, description="Exactly what was typed, keys as the characters they send.")
    foreground: str | None = Field(None, description="The program it was typed to.")
    next: int | None = Field(
        None,
        description="Where the output stood before: get_terminal_buffer with `after` shows what came of it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingPlan(Plan):
    """Frozen bytes, and the very program they are for."""

    terminal: Terminal
    data: bytes
    typist: Typist
    seen: Seen | None
    """As it looked when this was planned."""
    input: SendToTerminalInput


class SendToTerminal(Tool[SendToTerminalInput, TypingPlan]):
    """Types into a terminal."""

    name = "send_to_terminal"
    title = "Type into terminal"
    description = (
        "Type text or press keys in a terminal, as a person at its keyboard would: answer a prompt, drive a REPL or a "
        "full-screen program, interrupt with ctrl-c. It returns as soon as the keys are typed: read what came of them with "
        "wait_for_terminal or get_terminal_buffer. To run a shell line and get its output and exit code, execute_command "
        "with terminal_id is better. A prompt that hides what is typed (a password) takes a person's input only. "
        "The person may be asked first, and may take the terminal over."
    )
    input = SendToTerminalInput
    output = SendToTerminalOutput
    destructive = True

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def display(self, input: SendToTerminalInput) -> str:
        keys = " ".join(f"<{key}>" for key in input.keys)
        return f"Type into {brief(input.terminalId, 20)}: {brief(f'{input.text}{keys}', 60)}"

    async def plan(self, input: SendToTerminalInput, caller: Caller) -> TypingPlan:
        known = await self._reach.find(input.terminalId)
        terminal = open_to(known, caller)
        data = await _data(input, terminal)
        if len(data) > MOST_TYPED:
            raise Refusal(
                f"That is {len(data):,} bytes, and {MOST_TYPED:,} can be typed at once. Nothing was typed: write a file "
                "with write_file instead, or send less at a time."
            )
        return TypingPlan(
            claims=(typing(known, data, caller),),
            preview=preview(known, data, tuple(input.keys)),
            bound=bound(known),
            terminal=terminal,
            data=data,
            typist=Typist(person=False, name=caller.client),
            seen=terminal.seen,
            input=input,
        )

    async def run(self, plan: TypingPlan, call: "Call") -> Result:
        call.terminal = plan.terminal.id
        before = plan.terminal.tail.end
        await type_to(plan.terminal, plan.seen, plan.data, plan.typist)
        name = _reader(plan.seen)
        data: Json = {
            "terminal_id": plan.terminal.id,
            "typed": plan.data.decode(),
            "foreground": name,
            "next": before,
        }
        words = (
            f"Typed {len(plan.data)} bytes into terminal {plan.terminal.id}{f', to {name}' if name else ''}. "
        )
        then = (
            f"wait_for_terminal waits for what comes of it; get_terminal_buffer with after={before} reads it."
        )
        return answer(words + then, data, plan.input.response_format)


def open_to(known: Known, caller: Caller) -> Terminal:
    """The terminal, when this caller's keys may go there at all. Raises Refusal."""
    terminal = known.running
    if terminal is None:
        raise ended(known)
    if known.of == "command" and not is_own(known, caller):
        raise Refusal(
            f"Terminal {known.id} belongs to a call of another agent, so nothing was typed. Open your own with "
            "create_tracked_terminal."
        )
    if terminal.taken is not None:
        raise Refusal(
            f"Terminal {known.id} is taken over by {terminal.taken.by}, so nothing was typed. Wait until they release "
            "it; list_tracked_terminals tells who has it."
        )
    if terminal.seen is not None and terminal.seen.secret:
        raise Refusal(
            f"Terminal {known.id} hides what is typed: it asks for a secret, which only a person may give. They see the "
            "question on their page. Nothing was typed: tell them, then wait with wait_for_terminal."
        )
    return terminal


def typing(known: Known, data: bytes, caller: Caller) -> Claim:
    """What typing claims; a person's own terminal is a protected place."""
    return Claim(
        action="type",
        resource=data.decode(errors="replace"),
        inside=is_inside(known, caller),
        protected=known.owner.person,
    )


def preview(known: Known, data: bytes, keys: tuple[str, ...] = ()) -> InputPreview:
    return InputPreview(
        terminal=known.id,
        name=known.name,
        text=data.decode(errors="replace"),
        keys=keys,
        cwd=known.cwd,
        foreground=_reader(known.live and known.live.seen),
        owner=known.owner.name or ("a person" if known.owner.person else "an agent"),
    )


def bound(known: Known) -> Json:
    """An answer holds for this terminal and this program in it: what another program reads is another question."""
    seen = known.live.seen if known.live else None
    reader = seen.foreground if seen else None
    return {
        "terminal": known.id,
        "leader": known.pid,
        "foreground": [reader.pid, reader.name] if reader else None,
    }


async def type_to(terminal: Terminal, planned: Seen | None, data: bytes, typist: Typist) -> None:
    """Type, if the program in the foreground is still the one it was planned for. Raises Refusal."""
    try:
        seen = await terminal.look()
        if seen.foreground != (planned and planned.foreground):
            raise Refusal(
                f"Another program reads the keys of terminal {terminal.id} now: {_reader(seen) or 'none'}, and this was "
                f"meant for {_reader(planned) or 'none'}. Nothing was typed. Look at its screen (get_terminal_buffer, mode "
                "screen), then send again."
            )
        await terminal.type(data, typist)
    except (TypingRefused, KeeperError) as problem:
        raise Refusal(str(problem)) from None


async def _data(input: SendToTerminalInput, terminal: Terminal) -> bytes:
    newline = not input.keys if input.addNewline is None else input.addNewline
    text = input.text.replace("\r\n", "\r").replace("\n", "\r") + ("\r" if newline else "")
    try:
        typed = text.encode()
    except UnicodeEncodeError:
        raise Refusal(
            "The text is not valid (it cannot be encoded as UTF-8). Check its characters."
        ) from None
    try:
        pressed = encode(input.keys, await _application(terminal)) if input.keys else b""
    except UnknownKey as problem:
        raise Refusal(f"{problem} Nothing was typed.") from None
    if not typed and not pressed:
        raise Refusal("There is nothing to type. Give text, keys, or addNewline.")
    return typed + pressed


async def _application(terminal: Terminal) -> bool:
    """Whether the program asked for application cursor keys, as vim and less do."""
    shown = await anyio.to_thread.run_sync(render, terminal.tail, *terminal.size)
    return shown.application_keys


def _reader(seen: Seen | None) -> str:
    """The program that reads the keys, by name."""
    return seen.foreground.name if seen is not None and seen.foreground is not None else ""
