"""Contents: file contents that a client may read, each under a URI that was issued for it.

A client asks for other URIs too, such as files beside the one it shows. Nothing is served by path, only what was issued.
The contents before and after a change have the same path, since VS Code shows different paths as a rename.
"""

import hashlib
import os
import stat
from collections import OrderedDict
from urllib.parse import quote

import anyio.to_thread

from handrail.store.blobs import Blobs, BlobUnavailable
from handrail.store.values import FileChange

TEXT_BYTES = 64 * 1024 * 1024
"""Proposed contents in memory. Bounds memory; the oldest are dropped, and issued again with the next snapshot."""
MOST_BLOBS = 20_000
"""Contents of files that clients may read. Bounds memory."""


class Contents:
    """The contents that were issued."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._texts: OrderedDict[str, bytes] = OrderedDict()
        self._stored: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._size = 0

    def issue_text(self, name: str, path: str, text: str) -> str:
        """Issue a URI for a text. The same name and path always give the same URI."""
        uri = _uri(name, path)
        content = text.encode(errors="surrogateescape")
        self._size += len(content) - len(self._texts.pop(uri, b""))
        self._texts[uri] = content
        while self._size > TEXT_BYTES and len(self._texts) > 1:
            _, dropped = self._texts.popitem(last=False)
            self._size -= len(dropped)
        return uri

    def issue_blob(self, sha: str, path: str) -> str:
        """Issue a URI for the content of a file with this SHA-256."""
        uri = _uri(f"b{sha[:40]}", path)
        self._stored[uri] = sha, path
        self._stored.move_to_end(uri)
        if len(self._stored) > MOST_BLOBS:
            self._stored.popitem(last=False)
        return uri

    async def read(self, uri: str) -> bytes:
        """The content of an issued URI. Raises LookupError."""
        if (text := self._texts.get(uri)) is not None:
            return text
        stored = self._stored.get(uri)
        if stored is None:
            raise LookupError("Handrail serves only the contents that it named itself.")
        return await anyio.to_thread.run_sync(self.load, *stored)

    def load(self, sha: str, path: str) -> bytes:
        """The content with this SHA-256, which the file at this path has or had. Raises LookupError.

        Only contents that were replaced are stored. What a call wrote last is in the file itself.
        """
        try:
            return self._blobs.get(sha)
        except BlobUnavailable:
            content = _read_file(path)
        if hashlib.sha256(content).hexdigest() != sha:
            raise LookupError("This content is no longer kept: the file was changed since.")
        return content


def _read_file(path: str) -> bytes:
    """The content of a regular file, however something was put in its place. Raises LookupError."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            about = os.fstat(file.fileno())
            if stat.S_ISREG(about.st_mode) and about.st_size <= TEXT_BYTES:
                return file.read()
    except OSError:
        pass
    raise LookupError("This content is no longer kept.")


def _uri(name: str, path: str) -> str:
    return f"ahp-content://{name}{quote(path)}"


def is_issued_scheme(uri: str) -> bool:
    return uri.startswith("ahp-content://")


class FileEdits:
    """Describes changes of files, with URIs for the contents before and after."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def of_proposal(self, call: str, path: str, before: str | None, after: str | None) -> dict[str, object]:
        return file_edit(
            path,
            None if before is None else self._contents.issue_text(f"{call}-before", path, before),
            None if after is None else self._contents.issue_text(f"{call}-after", path, after),
        )

    def of_change(self, change: FileChange) -> dict[str, object]:
        return file_edit(
            change.path,
            None if change.before is None else self._contents.issue_blob(change.before, change.path),
            None if change.after is None else self._contents.issue_blob(change.after, change.path),
        )


def file_edit(path: str, before: str | None, after: str | None) -> dict[str, object]:
    """A change of one file; None: it does not exist before, or after."""
    uri = f"file://{quote(path)}"
    sides = {"before": before, "after": after}
    return {
        name: {"uri": uri, "content": {"uri": content}}
        for name, content in sides.items()
        if content is not None
    }
