"""Arguments of tools that MCP 2026-07-28 sends in HTTP headers too, as their schemas ask with `x-mcp-header`."""

from handrail.store.values import Json


class ArgumentHeaders:
    """What the tools of one server want."""

    def __init__(self) -> None:
        self._headers: dict[str, dict[tuple[str, ...], str]] = {}
        """Names of headers by the path of the argument, by tool."""

    def note(self, reply: Json) -> None:
        """Note the tools in an answer to `tools/list`."""
        from mcp.shared.inbound import x_mcp_header_map  # noqa: PLC0415 - most servers want none

        result = reply.get("result")
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else []:
            if isinstance(tool, dict):
                self._headers[str(tool.get("name"))] = x_mcp_header_map(tool.get("inputSchema"))

    def build(self, tool: str, params: Json) -> dict[str, str]:
        """The headers of a call."""
        known, arguments = self._headers.get(tool), params.get("arguments")
        if not known or not isinstance(arguments, dict):
            return {}
        from mcp.shared.inbound import mcp_param_headers  # noqa: PLC0415 - most servers want none

        return mcp_param_headers(known, arguments)
