"""Search of terminals by name, command, folder and output, in the search language of calls."""

import re
from collections.abc import Callable, Iterator, Sequence

from handrail.server.api.terminal_models import TerminalView
from handrail.store.search_query import BadQuery, SearchQuery, Term
from handrail.terminal.output.paging import read_page
from handrail.terminal.output.tail import Tail

PIECE = 1 << 20
"""Bytes of output read at a time. Bounds memory."""
OUTPUT_MAX, TOTAL_MAX = 16 << 20, 256 << 20
"""Bytes searched of one terminal's output, the newest, and of all. Bounds the time of a search."""
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")
Fits = Callable[[TerminalView, str], bool]


def _has_failed(view: TerminalView) -> bool:
    return not view.running and (view.lost or view.signal is not None or view.exit_code not in (0, None))


def _fits_status(view: TerminalView, status: str) -> bool:
    match status:
        case "running" | "open":
            return view.running
        case "ended":
            return not view.running
        case "waiting":
            return view.asks is not None
        case "done":
            return not view.running and not _has_failed(view)
        case "failed":
            return _has_failed(view)
        case _:
            return False


def _fits_exit(view: TerminalView, value: str) -> bool:
    return _has_failed(view) if value == "failed" else value in (str(view.exit_code), view.signal)


def _fits_agent(view: TerminalView, name: str) -> bool:
    if view.owner is None:
        return False
    return name.lower() in ("you" if view.owner.person else view.owner.name.lower())


FIELDS: dict[str, Fits] = {
    "status": _fits_status,
    "exit": _fits_exit,
    "agent": _fits_agent,
    "folder": lambda view, folder: folder.lower() in view.cwd.lower(),
    "terminal": lambda view, start: view.id.startswith(start),
    "since": lambda view, at: view.started_at >= int(at),
    "before": lambda view, at: view.started_at < int(at),
}
"""The keys that terminals have."""


def search_terminals(
    query: SearchQuery, views: Sequence[TerminalView], tail_of: Callable[[str], Tail], limit: int
) -> list[TerminalView]:
    """The terminals for which every term holds, in their order, at most `limit`. Raises BadQuery. Blocks."""
    for term in query.fields:
        if term.key not in FIELDS:
            raise BadQuery(f"`{term.key}:` is about calls. Terminals have {', '.join(FIELDS)} and in.")
    return list(_find(query, views, tail_of, limit))


def _find(
    query: SearchQuery, views: Sequence[TerminalView], tail_of: Callable[[str], Tail], limit: int
) -> Iterator[TerminalView]:
    left, found = TOTAL_MAX, 0
    for view in views:
        if found == limit:
            return
        if not all(_fits_field(view, term) for term in query.fields):
            continue
        unknown = _words_left(query, view)
        if unknown is None:
            continue
        if unknown and "output" in query.places and not view.forgotten:
            most = min(OUTPUT_MAX, left)
            printed, searched = _search_output(tail_of(view.id), unknown, most)
            left -= searched
        else:
            printed = set[str]()
        if all((term.text.lower() in printed) is not term.negated for term in unknown):
            found += 1
            yield view


def _fits_field(view: TerminalView, term: Term) -> bool:
    return term.negated != any(FIELDS[term.key](view, value) for value in term.values)


def _words_left(query: SearchQuery, view: TerminalView) -> list[Term] | None:
    """The words about which only the output decides; None if the terminal does not match whatever it holds."""
    name, command = view.name.lower(), " ".join((*view.argv, view.cwd, view.id)).lower()
    places = query.places
    text = "\n".join(
        part
        for part, ins in ((name, {"title", "terminal"}), (command, {"input", "terminal"}))
        if ins & places
    )
    unknown: list[Term] = []
    for term in query.words:
        if term.text.lower() not in text:
            unknown.append(term)
        elif term.negated:
            return None
    return unknown


def _search_output(tail: Tail, words: Sequence[Term], most: int) -> tuple[set[str], int]:
    """The words that the newest `most` bytes of output hold, without colours; and how many bytes were read."""
    wanted = {term.text.lower(): re.compile(re.escape(term.text.encode()), re.IGNORECASE) for term in words}
    longest = max(len(word.encode()) for word in wanted)
    found: set[str] = set()
    after, end = max(tail.first, tail.end - most), tail.end
    searched, before = 0, b""
    while after < end and len(found) < len(wanted):
        reading = read_page(tail, after=after, mode="raw", limit=min(PIECE, end - after))
        if reading.next <= after or not isinstance(reading.data, bytes):
            break
        searched += reading.next - after
        after = reading.next
        text = _COLOUR.sub(b"", before + reading.data)
        found |= {word for word, pattern in wanted.items() if word not in found and pattern.search(text)}
        before = text[-longest:]
    return found, searched
