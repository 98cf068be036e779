"""An agent as a typist: into what it may type, and what an approval of that is bound to.

Owns the claim, the preview and the last look before the keys are pressed. It does not decide who has a terminal
(terminal/terminal.py), and does not know what is typed or why (keyboard.py, typed.py).
"""

import hashlib

from handrail.gate.tool import Refusal
from handrail.keeper.protocol import Seen
from handrail.store.value import Caller, Claim, InputPreview, Json
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.terminal import Terminal, TypingRefused, Typist
from handrail.tools.terminals.known import Known, ended, is_inside, is_own


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
        foreground=reader_of(known.live and known.live.seen),
        owner=known.owner.name or ("a person" if known.owner.person else "an agent"),
    )


def bound(known: Known, data: bytes) -> Json:
    """An answer holds for these very bytes, this terminal, the program in it and where its shell is: what another
    program reads, or the same shell elsewhere, is another question."""
    seen = known.live.seen if known.live else None
    reader = seen.foreground if seen else None
    return {
        "terminal": known.id,
        "leader": known.pid,
        "foreground": [reader.pid, reader.name] if reader else None,
        "cwd": known.cwd,
        "typed": hashlib.sha256(data).hexdigest(),
    }


async def type_to(terminal: Terminal, planned: Seen | None, data: bytes, typist: Typist) -> None:
    """Type, if the program in the foreground is still the one it was planned for, and the shell still there. Raises
    Refusal."""
    try:
        seen = await terminal.look()
        if seen.foreground != (planned and planned.foreground):
            raise Refusal(
                f"Another program reads the keys of terminal {terminal.id} now: {reader_of(seen) or 'none'}, and this was "
                f"meant for {reader_of(planned) or 'none'}. Nothing was typed. Look at its screen (get_terminal_buffer, mode "
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


def reader_of(seen: Seen | None) -> str:
    """The program that reads the keys, by name."""
    return seen.foreground.name if seen is not None and seen.foreground is not None else ""
