"""Errors of HTTP requests, as sentences for people."""

import httpx2

from handrail.terminal.jsonrpc_messages import excerpt_line


def describe_http_error(problem: httpx2.HTTPError) -> str:
    """The reason, in one printable line."""
    if _is_refused(problem):
        return "connection refused, so nothing listens at its address"
    words = excerpt_line(str(problem).encode()) or type(problem).__name__
    return words.rstrip(".")


def _is_refused(problem: BaseException | None) -> bool:
    while problem is not None:
        if isinstance(problem, ConnectionRefusedError):
            return True
        problem = problem.__cause__ or problem.__context__
    return False
