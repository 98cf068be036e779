"""Paths of Handrail's files, directories and sockets, and the modes of the directories.

Neither reads nor writes files. Standard library only, because the door and the keeper import it first.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

SOCKET_PATH_MAX = 103 if sys.platform == "darwin" else 107
"""Bytes of `sun_path`: a socket with a longer path cannot be bound."""


def own_python() -> tuple[str, ...]:
    """The interpreter and its options to run a module of Handrail in a new process.

    Isolated where it finds our code then: it imports nothing from the working folder, PYTHONPATH or the user's
    site-packages, where an approved command can put a module. Not isolated for a checkout, whose code is writable too.
    """
    ours = Path(__file__).resolve().parents[1]
    named = [
        Path(folder).resolve() for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder
    ]
    is_installed = ours.is_relative_to(Path(sys.prefix).resolve()) or sys.prefix != sys.base_prefix
    is_isolated = bool(sys.flags.isolated) or (is_installed and ours not in named)
    return (sys.executable, "-I" if is_isolated else "-P")


class Places:
    """Every path Handrail uses, for one user and one home."""

    # Not a dataclass: importing dataclasses takes a quarter of a door's start time.
    __slots__ = ("config_dir", "data", "environment", "logs", "state")

    def __init__(
        self, config_dir: Path, data: Path, state: Path, logs: Path, environment: Mapping[str, str]
    ) -> None:
        self.config_dir = config_dir
        self.data = data
        self.state = state
        self.logs = logs
        self.environment = environment
        """Environment variables with which another process of this user finds the same paths."""

    @classmethod
    def find(cls, environ: Mapping[str, str] | None = None) -> Places:
        environ = os.environ if environ is None else environ
        root = environ.get("HANDRAIL_HOME")
        if root:
            return cls.under(Path(root))
        home = Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir).absolute()
        return _in_library(home) if sys.platform == "darwin" else _in_xdg(home, environ)

    @classmethod
    def under(cls, home: Path) -> Places:
        """Put all paths directly under one directory."""
        home = home.expanduser().absolute()
        return cls(home, home, home, home / "logs", {"HANDRAIL_HOME": str(home)})

    @property
    def config(self) -> Path:
        return self.config_dir / "config.toml"

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """Handrail's own folders, which are protected."""
        return self.config_dir, self.data, self.state

    @property
    def database(self) -> Path:
        return self.data / "handrail.db"

    @property
    def head(self) -> Path:
        return self.data / "handrail.head"

    @property
    def words(self) -> Path:
        return self.data / "words.db"

    @property
    def spool(self) -> Path:
        return self.data / "spool"

    @property
    def blobs(self) -> Path:
        return self.data / "blobs"

    @property
    def images(self) -> Path:
        return self.data / "images"

    @property
    def secrets(self) -> Path:
        """The names of the secrets of MCP servers, and their values where there is no keyring."""
        return self.data / "secrets.json"

    @property
    def tls(self) -> Path:
        """The certificates for paired devices, and the key of push messages."""
        return self.data / "tls"

    @property
    def daemon_json(self) -> Path:
        return self.state / "daemon.json"

    @property
    def port(self) -> Path:
        return self.state / "port"

    @property
    def daemon_lock(self) -> Path:
        return self.state / "daemon.lock"

    @property
    def keeper_lock(self) -> Path:
        return self.state / "keeper.lock"

    @property
    def daemon_socket(self) -> Path:
        return self._socket("daemon.sock")

    @property
    def keeper_socket(self) -> Path:
        return self._socket("keeper.sock")

    @property
    def ahp_socket(self) -> Path:
        return self._socket("ahp.sock")

    def make(self) -> None:
        """Create every directory, private to this user.

        Raises PermissionError if the socket directory under /tmp belongs to another user or is open to one, and OSError
        for a FIFO or a folder in the place of a file: to open a FIFO would block.
        """
        for directory in (
            self.config_dir,
            self.data,
            self.state,
            self.logs,
            self.spool,
            self.blobs,
            self.images,
        ):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_files()
        for socket in (self.daemon_socket, self.keeper_socket):
            if socket.parent != self.state:
                _make_private(socket.parent.parent)
                _make_private(socket.parent)

    def _check_files(self) -> None:
        own = (self.config, self.database, self.head, self.words, self.daemon_json, self.port)
        logs = (self.logs / name for name in ("daemon.log", "daemon.out", "keeper.log"))
        for path in (*own, self.daemon_lock, self.keeper_lock, *logs):
            if path.exists() and not path.is_file():
                raise OSError(f"{path} is not a regular file. Remove it, or put the file back in its place")

    def _socket(self, name: str) -> Path:
        beside = self.state / name
        return beside if len(os.fsencode(beside)) <= SOCKET_PATH_MAX else self._runtime() / name

    def _runtime(self) -> Path:
        # Derived from the state directory alone: a door with another environment must find the same socket.
        import hashlib  # noqa: PLC0415 - rarely needed, and importing it would slow the start of every door

        digest = hashlib.sha256(os.fsencode(self.state)).hexdigest()[:16]
        return Path("/tmp") / f"handrail-{os.getuid()}" / digest


def _in_xdg(home: Path, environ: Mapping[str, str]) -> Places:
    def base(variable: str, default: str) -> Path:
        directory = Path(environ.get(variable, ""))
        # The XDG specification requires relative paths to be ignored.
        return (directory if directory.is_absolute() else home / default) / "handrail"

    state = base("XDG_STATE_HOME", ".local/state")
    variables = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    return Places(
        config_dir=base("XDG_CONFIG_HOME", ".config"),
        data=base("XDG_DATA_HOME", ".local/share"),
        state=state,
        logs=state / "logs",
        environment={"HOME": str(home), **{name: environ[name] for name in variables if name in environ}},
    )


def _in_library(home: Path) -> Places:
    support = home / "Library" / "Application Support" / "Handrail"
    return Places(support, support, support, home / "Library" / "Logs" / "Handrail", {"HOME": str(home)})


def _make_private(directory: Path) -> None:
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(
            f"{directory} is not a private directory of this user; remove it and start again."
        )
