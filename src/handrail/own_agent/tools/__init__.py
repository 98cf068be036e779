"""The own agent's tools: MCP servers, sub-agents, the plan."""
