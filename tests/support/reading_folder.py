"""A workspace in which lines of the corpus reading_lines.toml are judged and run, and what surrounds it.

Beside the workspace lie a file that it must not reach, and programs under the names of common ones that leave a mark when
they are started (canaries).
"""

import hashlib
import os
import stat
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from handrail.gate.shell.shell_parser import parse
from handrail.store.values import Claim
from handrail.tools.commands.command_claims import command_claims
from handrail.tools.tool_context import PLAIN, with_git_settings
from handrail.tools.workspace import Workspace

CORPUS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("reading_lines.toml").read_text())
READS, OPTIONAL, ASKS = CORPUS["reads"], CORPUS["reads_if_installed"], CORPUS["asks"]
BIN = "/usr/bin:/bin"
FILES = {
    "README.md": "# Orchard\n\napples\nand pears\nand apples\n",
    "data.csv": "a,2\nb,1\nb,1\n",
    "names.txt": "README.md\n/etc/passwd\n",
    "data.gz": "x",
    "src/main.py": "import util\n\n# TODO: main\n",
    "src/util.py": "VALUE = 1\n",
    "docs/guide.md": "guide\n",
    "docs/with space.md": "space\n",
    ".env": "SECRET=1\n",
    ".gitignore": ".env\nbuild\n",
}
CANARIES = ("pr", "gpg", "less", "more", "sh", "bash", "ssh", "gzip", "canary", "fsmonitor", "textconv")


@dataclass(frozen=True, slots=True)
class ReadingFolder:
    """The workspace and what surrounds it."""

    base: Path
    root: Path
    home: Path
    canaries: Path
    mark: Path
    """Exists if a canary was started."""

    def claims(self, line: str, path: str = BIN) -> tuple[Claim, ...]:
        workspace = Workspace(str(self.root))
        return command_claims(parse(line), workspace.place("."), workspace, path)

    def reads(self, line: str, path: str = BIN) -> bool:
        """Whether the line is taken for one that only reads."""
        claims = self.claims(line, path)
        return bool(claims) and all(claim.reads for claim in claims)

    def env(self) -> dict[str, str]:
        return with_git_settings({"PATH": BIN, "HOME": str(self.home), "LANG": "C.UTF-8", **PLAIN})

    def git(self, *words: str, env: Mapping[str, str] | None = None) -> None:
        names = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Ann")
        mails = dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "ann@example.org")
        env = {**self.env(), **names, **mails, **(env or {})}
        subprocess.run(["/usr/bin/git", *words], cwd=self.root, env=env, check=True, capture_output=True)

    def snapshot(self) -> str:
        """A hash of every name, mode, time and content below the base folder."""
        whole = hashlib.sha256()
        for folder, names, files in os.walk(self.base):
            for name in sorted([*names, *files]):
                path = Path(folder, name)
                found = path.lstat()
                facts = (str(path), found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
                whole.update(repr(facts).encode())
                if stat.S_ISREG(found.st_mode):
                    whole.update(path.read_bytes())
        return whole.hexdigest()


def build_reading_folder(base: Path) -> ReadingFolder:
    base = base.resolve()
    found = ReadingFolder(base, base / "work", base / "home", base / "canaries", base / "mark")
    for folder in (found.root, found.home, found.canaries, base / "outside"):
        folder.mkdir()
    for name, content in FILES.items():
        (found.root / name).parent.mkdir(exist_ok=True)
        (found.root / name).write_text(content)
    (base / "outside.txt").write_text("outside\n")
    (base / "outside" / "outside.txt").write_text("outside\n")
    (found.root / "link-inside").symlink_to("README.md")
    (found.root / "link-to-env").symlink_to(".env")
    (found.root / "link-outside").symlink_to(base / "outside.txt")
    (found.root / "link-folder").symlink_to(base / "outside")
    os.mkfifo(found.root / "pipe")
    for name in CANARIES:
        add_canary(found, found.canaries / name)
    found.git("init", "-q", "-b", "main")
    found.git("add", ".")
    found.git("commit", "-qm", "First")
    found.git("tag", "v1.0")
    found.git("remote", "add", "origin", "https://example.org/orchard.git")
    (found.root / "src" / "main.py").write_text("import util\n\n# TODO: main, changed\n")
    return found


def add_canary(folder: ReadingFolder, path: Path) -> None:
    path.write_text(f"#!/bin/sh\necho {path.name} >> {folder.mark}\n")
    path.chmod(0o755)
