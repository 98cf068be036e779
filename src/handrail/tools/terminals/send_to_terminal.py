"""send_to_terminal: type text and keys into a terminal.

Also the checks that every tool shares which types: whether the agent may type into this terminal, and the
facts that an approval of typed input is bound to.
"""

import hashlib
from typing import Annotated

from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Claim, InputPreview, Json, Result
from handrail.terminal.input.keys import UnknownKey, encode
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.output.screen import render_screen
from handrail.terminal.terminal import InputSender, Seen, Terminal, TypingRefused
from handrail.terminal.thread_pool import AGENTS
from handrail.tools.commands.command_claims import text_typed
from handrail.tools.results import Format, Input, answer, printable_line
from handrail.tools.terminals.create_tracked_terminal import SHELLS
from handrail.tools.terminals.terminal_lookup import FoundTerminal, is_inside, is_own, refuse_ended
from handrail.tools.tool_context import ToolContext

MOST_TYPED = 65_536
"""Bytes typed in one call: most programs do not read more at a time, and a person cannot review it."""


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


class SendToTerminalOutput(BaseModel, defer_build=True):
    terminal_id: str | None = None
    typed: str | None = Field(None, description="Exactly what was typed, keys as the characters they send.")
    foreground: str | None = Field(None, description="The program it was typed to.")
    next: int | None = Field(
        None,
        description="Where the output stood before: get_terminal_buffer with `after` shows what came of it.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingPlan(Plan):
    """The bytes to type, and the terminal and program they are for."""

    terminal: Terminal
    data: bytes
    typist: InputSender
    seen: Seen | None
    """The terminal's state when the call was planned."""
    input: SendToTerminalInput


class SendToTerminal(Tool[SendToTerminalInput, TypingPlan]):
    """Type into a terminal."""

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

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def display(self, input: SendToTerminalInput) -> str:
        keys = " ".join(f"<{key}>" for key in input.keys)
        return (
            f"Type into {printable_line(input.terminalId, 20)}: {printable_line(f'{input.text}{keys}', 60)}"
        )

    async def plan(self, input: SendToTerminalInput, caller: Caller) -> TypingPlan:
        known = await self._context.find(input.terminalId)
        terminal = check_can_type(known, caller)
        data = await _data(input, terminal)
        if len(data) > MOST_TYPED:
            raise Refusal(
                f"That is {len(data):,} bytes, and {MOST_TYPED:,} can be typed at once. Nothing was typed: write a file "
                "with write_file instead, or send less at a time."
            )
        shell, whole = (
            foreground_name(terminal.seen) in SHELLS,
            data == _lines(input.text).rstrip(b"\r") + b"\r",
        )
        return TypingPlan(
            claims=text_typed(typing_claim(known, data, caller), input.text, shell=shell, whole=whole),
            preview=typing_preview(known, data, tuple(input.keys)),
            bound=typing_bound(known, data),
            terminal=terminal,
            data=data,
            typist=InputSender(person=False, name=caller.client),
            seen=terminal.seen,
            input=input,
        )

    async def run(self, plan: TypingPlan, call: CallReport) -> Result:
        call.use_terminal(plan.terminal.id)
        before = plan.terminal.tail.end
        await type_to(plan.terminal, plan.seen, plan.data, plan.typist)
        name = foreground_name(plan.seen)
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


async def _data(input: SendToTerminalInput, terminal: Terminal) -> bytes:
    newline = not input.keys if input.addNewline is None else input.addNewline
    try:
        typed = _lines(input.text) + (b"\r" if newline else b"")
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


def _lines(text: str) -> bytes:
    """Encode text with CR line ends, as a keyboard sends them."""
    return text.replace("\r\n", "\r").replace("\n", "\r").encode()


async def _application(terminal: Terminal) -> bool:
    """Whether the program switched on application cursor keys, as vim and less do."""
    shown = await AGENTS.run(render_screen, terminal.tail, *terminal.size)
    return shown.application_keys


def check_can_type(known: FoundTerminal, caller: Caller) -> Terminal:
    """The running terminal, if this caller may type into it. Raises Refusal."""
    terminal = known.running
    if terminal is None:
        raise refuse_ended(known)
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


def typing_claim(known: FoundTerminal, data: bytes, caller: Caller) -> Claim:
    """The claim of typing; a person's own terminal counts as protected."""
    return Claim(
        action="type",
        resource=data.decode(errors="replace"),
        inside=is_inside(known, caller),
        protected=known.owner.person,
    )


def typing_preview(known: FoundTerminal, data: bytes, keys: tuple[str, ...] = ()) -> InputPreview:
    return InputPreview(
        terminal=known.id,
        name=known.name,
        text=data.decode(errors="replace"),
        keys=keys,
        cwd=known.cwd,
        foreground=foreground_name(known.live and known.live.seen),
        owner=known.owner.name or ("a person" if known.owner.person else "an agent"),
    )


def typing_bound(known: FoundTerminal, data: bytes) -> Json:
    """Facts an approval is bound to: the bytes, the terminal, its foreground program and folder.

    The same bytes mean something else to another program, or to the shell in another folder.
    """
    seen = known.live.seen if known.live else None
    reader = seen.foreground if seen else None
    return {
        "terminal": known.id,
        "leader": known.pid,
        "foreground": [reader.pid, reader.name] if reader else None,
        "cwd": known.cwd,
        "typed": hashlib.sha256(data).hexdigest(),
    }


async def type_to(terminal: Terminal, planned: Seen | None, data: bytes, typist: InputSender) -> None:
    """Type if foreground program and folder are still as planned. Raises Refusal."""
    try:
        seen = await terminal.look()
        if seen.foreground != (planned and planned.foreground):
            raise Refusal(
                f"Another program reads the keys of terminal {terminal.id} now: {foreground_name(seen) or 'none'}, and this was "
                f"meant for {foreground_name(planned) or 'none'}. Nothing was typed. Look at its screen (get_terminal_buffer, mode "
                "screen), then send again."
            )
        if planned is not None and seen.cwd != planned.cwd:
            raise Refusal(
                f"The shell of terminal {terminal.id} has gone from {planned.cwd} to {seen.cwd}. Nothing was typed; send "
                "again if it is meant for there."
            )
        await terminal.type(data, typist)
    except (TypingRefused, KeeperError) as problem:
        raise Refusal(str(problem)) from None


def foreground_name(seen: Seen | None) -> str:
    """Name of the foreground program, which reads the input."""
    return seen.foreground.name if seen is not None and seen.foreground is not None else ""
