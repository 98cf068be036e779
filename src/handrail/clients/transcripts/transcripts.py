"""Finds the clients' transcripts below their own folders, lists them, and reads one.

A client's folder may be a symbolic link (people keep such folders elsewhere); below it no link is followed, and only
regular files are opened. All methods block on the disk: call them in a thread.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import get_args

from handrail.clients.transcripts._claude_transcript import read_claude, summarize_claude
from handrail.clients.transcripts._codex_transcript import read_codex, summarize_codex
from handrail.clients.transcripts._gemini_transcript import read_gemini, summarize_gemini
from handrail.clients.transcripts._opencode_transcript import list_opencode, read_opencode
from handrail.clients.transcripts.transcript import (
    ClientName,
    Transcript,
    TranscriptSummary,
    title_from_prompt,
)

HEAD_BYTES = 256 * 1024
"""Bytes at the beginning of a file that are read for its title."""
MOST_BYTES = 24 * 1024 * 1024
"""Bytes at the end of a file that are read for its messages; bounds memory and time."""
MOST_FILES = 5000
"""Files of one client that are looked at; bounds the time of a list."""
MOST_LISTED = 500
"""Transcripts in a list; bounds the files that are opened for it."""
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,128}")


class UnknownTranscript(LookupError):
    """There is no such transcript, or it cannot be read."""


@dataclass(frozen=True, slots=True)
class _File:
    client: ClientName
    path: str
    status: os.stat_result


class Transcripts:
    """The transcripts of a person's clients."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        claude = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        codex = Path(environment.get("CODEX_HOME") or home / ".codex")
        data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
        self._roots: dict[ClientName, Path] = {
            "claude": claude,
            "codex": codex,
            "gemini": home / ".gemini",
            "opencode": data / "opencode",
        }
        self._summaries: dict[tuple[str, int, int], TranscriptSummary] = {}

    @classmethod
    def of_user(cls) -> "Transcripts":
        """The transcripts of the user who runs this process."""
        return cls(Path.home(), os.environ)

    def find(self, folder: str | None = None, limit: int = MOST_LISTED) -> list[TranscriptSummary]:
        """The newest transcripts first; with `folder`, those of this folder and the folders below it."""
        files = sorted(self._find_files(), key=lambda file: file.status.st_mtime_ns, reverse=True)
        found = [self._summarize(file) for file in files[:MOST_LISTED]]
        found += list_opencode(database, MOST_LISTED) if (database := self._database()) else []
        matching = [one for one in found if one.title and (folder is None or _is_below(one.folder, folder))]
        return sorted(matching, key=lambda one: one.updated_at, reverse=True)[:limit]

    def read(self, client: str, session: str) -> tuple[TranscriptSummary, Transcript]:
        """One transcript. Raises UnknownTranscript."""
        if client not in get_args(ClientName) or not _SESSION.fullmatch(session):
            raise UnknownTranscript(_NO_TRANSCRIPT.format(client=client, session=session))
        if client == "opencode":
            return self._read_opencode(session)
        for file in self._find_files(client):
            if _may_be_of(file, session) and (summary := self._summarize(file)).session == session:
                content, shortened = _read_end(file.path)
                return summary, _READERS[file.client](content, shortened=shortened)
        raise UnknownTranscript(_NO_TRANSCRIPT.format(client=client, session=session))

    def _read_opencode(self, session: str) -> tuple[TranscriptSummary, Transcript]:
        database = self._database()
        for summary in list_opencode(database, MOST_FILES) if database else ():
            if database and summary.session == session:
                return summary, read_opencode(database, session)
        raise UnknownTranscript(_NO_TRANSCRIPT.format(client="opencode", session=session))

    def _database(self) -> Path | None:
        path = Path(os.path.realpath(self._roots["opencode"]), "opencode.db")
        try:
            return path if stat.S_ISREG(os.lstat(path).st_mode) else None
        except OSError:
            return None

    def _find_files(self, only: str = "") -> Iterator[_File]:
        for client, (top, depth, is_transcript) in _LAYOUTS.items():
            if only in ("", client):
                folder = f"{os.path.realpath(self._roots[client])}/{top}"
                if not Path(folder).is_symlink():
                    yield from islice(_walk(client, folder, depth, is_transcript), MOST_FILES)

    def _summarize(self, file: _File) -> TranscriptSummary:
        key = (file.path, file.status.st_mtime_ns, file.status.st_size)
        known = self._summaries.get(key)
        if known is None:
            if len(self._summaries) > 4 * MOST_LISTED:
                self._summaries.clear()
            known = self._summaries[key] = _summarize(file)
        return known


_NO_TRANSCRIPT = "There is no transcript {session} of {client}. `handrail transcripts` lists what there is."
_READERS: dict[ClientName, Callable[..., Transcript]] = {
    "claude": read_claude,
    "codex": read_codex,
    "gemini": read_gemini,
}
_LAYOUTS: dict[ClientName, tuple[str, int, Callable[[str], bool]]] = {
    "claude": ("projects", 2, lambda name: name.endswith(".jsonl") and not name.startswith("agent-")),
    "codex": ("sessions", 4, lambda name: name.startswith("rollout-") and name.endswith(".jsonl")),
    "gemini": ("tmp", 3, lambda name: name.startswith("session-") and name.endswith((".jsonl", ".json"))),
}
"""By client: the folder below its own, how deep the files lie in it, and which they are."""


def _walk(
    client: ClientName, folder: str, depth: int, is_transcript: Callable[[str], bool]
) -> Iterator[_File]:
    """The files exactly `depth` levels down, newest names first. Symbolic links are passed over."""
    for entry in _scan(folder):
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            if client != "gemini" or depth != 2 or entry.name == "chats":
                yield from _walk(client, entry.path, depth - 1, is_transcript)
        elif depth == 1 and is_transcript(entry.name) and entry.is_file(follow_symlinks=False):
            try:
                yield _File(client, entry.path, entry.stat(follow_symlinks=False))
            except OSError:
                continue  # removed meanwhile


def _scan(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name, reverse=True)
    except OSError:
        return ()


def _may_be_of(file: _File, session: str) -> bool:
    """Whether the name of the file fits the session: Gemini's has only the first eight characters."""
    return Path(file.path).stem.endswith(session[:8] if file.client == "gemini" else session)


def _summarize(file: _File) -> TranscriptSummary:
    path = Path(file.path)
    content = _read(file.path, HEAD_BYTES if path.suffix == ".jsonl" else MOST_BYTES)
    match file.client:
        case "claude":
            session = path.stem
            prompt, folder = summarize_claude(content)
        case "codex":
            session = path.stem[-36:]
            prompt, folder = summarize_codex(content)
        case _:
            prompt, session = summarize_gemini(content)
            root = _read(f"{path.parent.parent}/.project_root", 4096)
            folder = root.decode(errors="replace").strip()
    return TranscriptSummary(
        client=file.client,
        session=session or path.stem,
        title=title_from_prompt(prompt),
        folder=folder,
        updated_at=file.status.st_mtime_ns // 1_000_000,
        size=file.status.st_size,
    )


def _read_end(path: str) -> tuple[bytes, bool]:
    """The end of a file from the beginning of a line on, and whether that is not all of it."""
    try:
        size = os.lstat(path).st_size
    except OSError:
        size = 0
    if size <= MOST_BYTES:
        return _read(path, MOST_BYTES), False
    return _read(path, MOST_BYTES, size - MOST_BYTES).partition(b"\n")[2], True


def _read(path: str, most: int, offset: int = 0) -> bytes:
    """Bytes of a regular file; empty for anything else. Never follows a link, and never waits for another process."""
    try:
        descriptor = _open_real(path)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        file.seek(offset)
        return file.read(most)


def _open_real(path: str) -> int:
    """Open a path in which no component is a symbolic link, one component at a time."""
    *folders, name = path.strip("/").split("/")
    held = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held)
            os.close(held)
            held = below
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=held)
    finally:
        os.close(held)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
