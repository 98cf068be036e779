"""Tries: orders to the keeper, each with and without a greeting."""

import json
from typing import Any

from handrail.keeper.protocol import PROTOCOL

from .ground import Got, Order, Try
from .sockets import converse

ORDERS: dict[str, dict[str, Any]] = {
    "start": {"terminal": "tx", "argv": ["/bin/true"], "cwd": "/", "env": {}},
    "input": {"terminal": "tx", "data": "Cg=="},
    "resize": {"terminal": "tx", "cols": 10, "rows": 10},
    "signal": {"terminal": "tx", "number": 9},
    "look": {"terminal": "tx"},
    "stop": {"terminal": "tx"},
    "forget": {"terminal": "tx", "delete": True},
    "recall": {"key": "sign-ins"},
    "remember": {"key": "sign-ins", "value": "e30="},
    "listen": {"ports": [0]},
    "health": {},
    "shutdown": {},
}


def orders(kind: str, *greetings: str) -> Try:
    def attempt(_order: Order) -> Got:
        hellos = [{"is": "hello", "protocol": PROTOCOL, "want": want, "terminal": "tx"} for want in greetings]
        said = converse("keeper.sock", *hellos, {"is": kind, "id": 1, **ORDERS[kind]})
        refused = said.get("is") == "refused"
        for_this = not greetings or "does not take orders" in said.get("why", "")
        return Got(1 if refused and for_this else 0, json.dumps(said))

    return attempt


TRIES: dict[str, Try] = {
    **{f"{kind} as a daemon": orders(kind, "daemon") for kind in ORDERS},
    **{f"{kind} through a window": orders(kind, "attach") for kind in ORDERS},
    **{f"{kind} without a greeting": orders(kind) for kind in ORDERS},
    "a greeting that ends it": orders("health", "shutdown"),
}
