"""Tries: HTTP, with the bearer of a call and with one of our own making."""

import contextlib
import hashlib
import http.client
import json

from .ground import BOUND, Got, Order, Try, where

FORGED = "forged-by-a-command-that-wants-to-be-a-person"


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def request(method: str, path: str, bearer: str | None, body: object = None) -> tuple[int, str]:
    headers = {"content-type": "application/json"}
    if bearer is not None:
        headers["authorization"] = f"Bearer {bearer}"
    with contextlib.closing(http.client.HTTPConnection(where(), timeout=BOUND)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")


def approve(order: Order, bearer: str) -> Got:
    body = {"answer": "allow", "digest": order.ids["digest"]}
    status, said = request("POST", f"/api/approvals/{order.ids['approval']}/answer", bearer, body)
    return Got(1 if status in (401, 403) else 0, f"{status} {said}")


TRIES: dict[str, Try] = {
    "the call bearer": lambda order: approve(order, order.ids["bearer"]),
    "a forged bearer": lambda order: approve(order, FORGED),
}
