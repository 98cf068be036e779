/** The commands that connect an agent, and whether it has connected; pure. */
import type { KnownClient } from "../../api/types.ts";

/** The choice for an agent that `handrail connect` does not know. */
export const OTHER = "other";

/** What MCP clients call themselves, where it is not the name that `handrail connect` has for them. */
const ALIASES: Readonly<Record<string, string>> = { vscode: "visual studio code", jetbrains: "intellij" };

/** How Handrail is called on this machine, from the daemon's command for MCP clients: its path, and its home if set. */
export function programOf(commandLine: string): string {
  return (commandLine.split(" -- ").at(-1) ?? "handrail mcp").replace(/ mcp$/, "");
}

/** `handrail connect claude`; for other agents, the MCP server to add. */
export function connectCommand(choice: string, commandLine: string): string {
  const program = programOf(commandLine);
  return choice === OTHER ? `${program} mcp` : `${program} connect ${choice}`;
}

/** Whether one of these names, which clients gave themselves, is that client's. */
export function hasCalled(choice: string, callers: Iterable<string>): boolean {
  const wanted = ALIASES[choice] ?? choice;
  return [...callers].some((caller) => caller.toLowerCase().includes(wanted));
}

/** The clients shown as tabs: those that are installed, else the first few; and the others, for a menu. */
export function splitClients(known: readonly KnownClient[], most = 3): { tabs: readonly KnownClient[]; more: readonly KnownClient[] } {
  const found = known.filter((client) => client.found);
  const tabs = (found.length ? found : known).slice(0, most);
  return { tabs, more: known.filter((client) => !tabs.includes(client)) };
}
