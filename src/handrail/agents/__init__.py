"""Hosting of ACP agents: the registry, the running programs, and the conversations that people have with
them."""

EXPORTS = {
    "acp.agent": "Agent",
    "acp.agent_errors": "AgentError",
    "acp.capabilities": "McpEntry",
    "acp.session_list": "ListedSession",
    "conversation.agent_sessions": "McpEntryBuilder Origin",
    "conversation.send_prompt": "PromptPart",
    "conversation.session_modes": "Asking Asks add_asking find_asking may_ask_less",
    "conversation.session_state": "Commands Modes Options Speaker Usage",
    "conversation.thread_prompts": "",
    "pool": "Agents",
    "registry": "ListedAgent Registry build_own_section has_provider_key",
    "requests.handlers": "RequestHandlers",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
