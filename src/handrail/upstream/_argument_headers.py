"""Arguments of tools that MCP 2026-07-28 sends in HTTP headers too, as their schemas ask with `x-mcp-header`."""

from handrail.store.values import Json

TOOLS_MAX = 1000
"""Tools of one server that want headers. Bounds memory."""


class ArgumentHeaders:
    """What the tools of one server want."""

    def __init__(self) -> None:
        self._headers: dict[str, dict[tuple[str, ...], str]] = {}
        """Names of headers by the path of the argument, by tool."""

    def note(self, reply: Json) -> None:
        """Note the tools in an answer to `tools/list`."""
        # Not at the top: most servers want none.
        from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map  # noqa: PLC0415

        result = reply.get("result")
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else []:
            schema = tool.get("inputSchema") if isinstance(tool, dict) else None
            name = str(tool.get("name")) if isinstance(tool, dict) else ""
            self._headers.pop(name, None)
            if find_invalid_x_mcp_header(schema) is None and (wanted := x_mcp_header_map(schema)):
                self._headers[name] = wanted
            while len(self._headers) > TOOLS_MAX:  # a server may name others in each list
                del self._headers[next(iter(self._headers))]

    def build(self, tool: str, params: Json) -> dict[str, str]:
        """The headers of a call."""
        known, arguments = self._headers.get(tool), params.get("arguments")
        if not known or not isinstance(arguments, dict):
            return {}
        from mcp.shared.inbound import mcp_param_headers  # noqa: PLC0415 - most servers want none

        return mcp_param_headers(known, arguments)
