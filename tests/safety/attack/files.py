"""Tries: writing ourselves into every file that could hold who is let in, then having the daemon start anew."""

import contextlib
import json
import sqlite3

from .ground import HOME, Got, Order, Try, about
from .postures import after_killing_the_daemon_which_a_door_starts_again
from .web import FORGED, approve, hashed

SIGN_INS = {hashed(FORGED): ["s00000000000", "page"]}


def alters_the_database(order: Order) -> Got:
    with contextlib.closing(sqlite3.connect(HOME / "handrail.db", timeout=5)) as database, database:
        columns = [row[1] for row in database.execute("pragma table_info(credentials)")]
        ours = {"id": "k00000000000", "name": "person", "workspace": "/", "sha256": hashed(FORGED)}
        known = {"issued_at": 1, "issued_seq": 1, **ours}
        marks = ",".join("?" * len(columns))
        row = [known.get(name) for name in columns]
        database.execute(f"insert into credentials values ({marks})", row)
    return _again(order)


def alters_daemon_json(order: Order) -> Got:
    secret = {"sign_ins": SIGN_INS, "person": hashed(FORGED), "bearer": FORGED}
    (HOME / "daemon.json").write_text(json.dumps({**about(), **secret}))
    return _again(order)


def lays_files_of_its_own(order: Order) -> Got:
    for name in ("sign-ins", "sign_ins.json", "access.json", "bearers"):
        (HOME / name).write_text(json.dumps(SIGN_INS))
    return _again(order)


def _again(order: Order) -> Got:
    after_killing_the_daemon_which_a_door_starts_again()
    return approve(order, FORGED)


TRIES: dict[str, Try] = {
    "alters the database": alters_the_database,
    "alters daemon.json": alters_daemon_json,
    "lays files of its own": lays_files_of_its_own,
}
