/** The commands that connect the first agent; pure. */

export interface ConnectChoice {
  readonly id: "claude" | "codex" | "gemini" | "other";
  readonly word: string;
}

export const CONNECT_CHOICES: readonly ConnectChoice[] = [
  { id: "claude", word: "Claude Code" },
  { id: "codex", word: "Codex" },
  { id: "gemini", word: "Gemini CLI" },
  { id: "other", word: "Other" },
];

/** How Handrail is called on this machine, from the daemon's command for MCP clients: its path, and its home if set. */
export function programOf(commandLine: string): string {
  return (commandLine.split(" -- ").at(-1) ?? "handrail mcp").replace(/ mcp$/, "");
}

/** `handrail connect claude`; for other agents, the MCP server to add. */
export function connectCommand(choice: ConnectChoice["id"], commandLine: string): string {
  const program = programOf(commandLine);
  return choice === "other" ? `${program} mcp` : `${program} connect ${choice}`;
}
