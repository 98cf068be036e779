"""Runs an attack as a command under Handrail's own gate, and brings back what it got."""

import contextlib
import http.client
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.safety.account import Account, until
from tests.safety.attack.ground import Got

PROGRAM = Path(__file__).parent / "attack"


@dataclass
class Hostile:
    """A home with a question that waits, an agent's bearer, a person's bearer, and an attack on all of it."""

    account: Account
    person: str = field(init=False)
    agent: str = field(init=False)
    ids: dict[str, str] = field(init=False)
    keeper: int = field(init=False)
    """Who was the keeper before any attack."""

    def __post_init__(self) -> None:
        self.account.start()
        self.account.trust()
        self.keeper = self.account.keeper
        self.person = self.account.sign_in()
        self._let_loose()
        self.agent = self.account.credential()
        call = self.account.ask(self.agent)["call_id"]
        (row,) = self.account.http("GET", "/api/approvals?open=true", self.person).json
        (credential,) = self.account.http("GET", "/api/credentials", self.person).json
        self.ids = {
            "approval": row["id"],
            "digest": row["digest"],
            "call": call,
            "credential": credential["id"],
            "workspace": str(self.account.workspace),
            "bearer": self.agent,
        }

    def _let_loose(self) -> None:
        """Nobody need allow an attack: a rule does."""
        rule = {"command": f"{self.account.python} -m attack", "workspace": str(self.account.workspace)}
        answer = self.account.http("POST", "/api/rules", self.person, rule)
        assert answer.status == 201, answer.body

    def attack(self, posture: str, tries: Iterable[str]) -> "Loot":
        """Have it run, and wait for what it has to tell."""
        self.order(posture, tries)
        return self.loot()

    def order(self, posture: str, tries: Iterable[str]) -> None:
        """Have it run."""
        place = self.account.workspace
        shutil.copytree(PROGRAM, place / "attack", dirs_exist_ok=True)
        order = {"posture": posture, "tries": [*tries], "ids": self.ids, "out": str(self._out)}
        self.account.write(place / "order.json", json.dumps(order))
        self._out.unlink(missing_ok=True)
        self.account.write(place / "attack" / "home", str(self.account.home))
        line = f"{self.account.python} -m attack order.json"
        with contextlib.suppress(
            http.client.HTTPException, OSError
        ):  # it may end the daemon before that has answered
            self.account.call(self.agent, "execute_command", command=line, background=True)

    def loot(self) -> "Loot":
        """Wait for what it has to tell."""
        until(self._out.exists, "the attack tells what it got", within=150)
        return Loot(json.loads(self._out.read_text()))

    @property
    def _out(self) -> Path:
        return self.account.workspace / "got.json"

    def asked(self) -> Mapping[str, Any]:
        """The question, as anybody may see it now."""
        done = self.account.handrail("approvals", "--all", "--json")
        assert done.returncode == 0, done.stderr
        return {row["id"]: row for row in json.loads(done.stdout)}[self.ids["approval"]]


@dataclass(frozen=True)
class Loot:
    """What an attack brought back."""

    told: dict[str, Any]

    @property
    def above(self) -> list[int]:
        """Who stood above the attack when it tried, nearest first."""
        return self.told["above"]

    def of(self, name: str) -> Got:
        assert "broke" not in self.told, self.told
        return Got(*self.told["got"][name])
