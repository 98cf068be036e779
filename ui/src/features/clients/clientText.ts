/** Texts of connected clients, and what follows from a call being a client's own work; pure. */
import type { Caller, CallView, ClientView, Json } from "../../api/types.ts";
import type { StatusLabel } from "../../lib/callText.ts";
import { visibleText } from "../../lib/visibleText.ts";
import type { TrackedApproval } from "../../state/model.ts";

/** Names that people know the clients by. */
const TITLES: Record<string, string> = {
  claude: "Claude Code", codex: "Codex", gemini: "Gemini CLI", opencode: "opencode", qwen: "Qwen Code", copilot: "Copilot CLI", kimi: "Kimi Code", cline: "Cline", cursor: "Cursor", windsurf: "Windsurf", goose: "goose", vscode: "VS Code",
};

/** Whether the client does the work itself, and only its hook asks. */
export function isClientWork({ door }: Pick<Caller, "door">): boolean {
  return door === "hook";
}

/** Whether the agent watches the terminal of its running call by itself: ACP ends the request once the command has begun. */
export function isWatched({ caller, status, terminal_id }: Pick<CallView, "caller" | "status" | "terminal_id">): boolean {
  return caller.door === "acp" && status === "running" && terminal_id !== null;
}

/** The tool of calls that clients do themselves. Its input holds the client's own input, and who asks. */
const CLIENT_WORK = "client_work";

/** The input as the agent's own tool takes it: the only part of a client's work that can be edited. */
export function toolInput(tool: string, input: Json | undefined): Json | undefined {
  const inner = tool === CLIENT_WORK ? input?.input : undefined;
  return inner && typeof inner === "object" && !Array.isArray(inner) ? (inner as Json) : input;
}

/** The tool's name, for a client's own work as the client calls it. */
export function clientTool(tool: string, input: Json | undefined): string {
  return tool === CLIENT_WORK && typeof input?.tool === "string" ? input.tool : tool;
}

/** The whole input again, with this part replaced. */
export function withToolInput(tool: string, input: Json, edited: Json): Json {
  return toolInput(tool, input) === input ? edited : { ...input, input: edited };
}

/** The name of a caller: for a client's own work the name that people know. */
export function callerName({ door, client }: Pick<Caller, "door" | "client">): string {
  return door === "hook" ? (TITLES[client] ?? client) : client;
}

/** The client's own id of the conversation that a call belongs to; empty for other calls. */
export function callerSession({ door, client, key }: Pick<Caller, "door" | "client" | "key">): string {
  return door === "hook" && key.startsWith(`${client} `) ? key.slice(client.length + 1) : "";
}

/** The filter of the calls of one conversation. */
export function sessionFilter(client: string, session: string): string {
  return `session:${client}:${session}`;
}

/** A client as the list shows it: an open approval means that it needs the person. */
export interface ClientState {
  readonly client: ClientView;
  readonly status: StatusLabel;
  /** When that state began, by the daemon's clock. */
  readonly since: number;
}

/** The clients with their states; approvals come from the journal, and so are always current here. */
export function clientStates(clients: readonly ClientView[], open: readonly TrackedApproval[]): ClientState[] {
  return clients.map((client) => {
    const asked = open.filter(({ caller }) => caller.key === client.key).map(({ asked_at }) => asked_at);
    if (asked.length) return { client, status: NEEDS, since: Math.min(...asked) };
    const isStale = client.state === "needs_you" && client.approvals.length > 0; // answered since it was sent
    return { client, status: isStale ? WORKING : STATES[client.state], since: client.since };
  });
}

const NEEDS: StatusLabel = { sign: "needs", tone: "amber", word: "needs you" };
const WORKING: StatusLabel = { sign: "running", tone: "blue", word: "working" };
const STATES: Record<ClientView["state"], StatusLabel> = { needs_you: NEEDS, working: WORKING, idle: { sign: "done", tone: "grey", word: "idle" } };

/** After a shorter turn, the person is still looking. The daemon's own notifications use the same time. */
const LONG_TURN_MS = 30_000;

/** What is new about a client that was known before; empty if nothing is. An open approval is announced as such. */
export function clientNews(before: ClientState | undefined, { client }: ClientState, now: number): string {
  if (!before || before.client.state === client.state) return "";
  const name = `${client.title}${client.folder ? ` in ${visibleText(client.folder.split("/").at(-1) ?? "")}` : ""}`;
  const words = client.message ? `: ${visibleText(client.message).slice(0, 120)}` : "";
  if (client.state === "needs_you" && client.approvals.length === 0) return `${name} wants your attention${words}`;
  return client.state === "idle" && now - before.client.since >= LONG_TURN_MS ? `${name} has finished${words}` : "";
}
