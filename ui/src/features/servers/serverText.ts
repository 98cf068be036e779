/** What the view of MCP servers says; pure. */
import type { ServerLoginView, ServerToolView, ServerView } from "../../api/types.ts";
import type { Sign, Tone } from "../../lib/callText.ts";

const STATES: Readonly<Record<ServerView["state"], { readonly word: string; readonly tone: Tone; readonly sign: Sign; readonly says: string }>> = {
  running: { word: "running", tone: "blue", sign: "running", says: "At least one client uses it: each has its own process." },
  starting: { word: "starting", tone: "blue", sign: "running", says: "It has not answered yet." },
  idle: { word: "not started", tone: "grey", sign: "gone", says: "It is started when an agent uses it." },
  failed: { word: "failed", tone: "red", sign: "failed", says: "Its last start failed, or it ended soon after. It is started again on the next use." },
  held: { word: "not accepted", tone: "amber", sign: "needs", says: "config.toml changed without Handrail, so nothing is started until a person accepts it." },
  disabled: { word: "disabled", tone: "grey", sign: "withdrawn", says: "`enabled = false` in config.toml." },
};

const SIGN_INS = {
  needed: { word: "needs sign-in", tone: "amber", sign: "needs", says: "Its calls fail until a person signs in." },
  pending: { word: "signing in", tone: "blue", sign: "running", says: "Handrail waits until the browser comes back." },
} as const;

/** The state for the badge: a sign-in that is missing explains a failure better than the failure does. */
export function stateOf(state: ServerView["state"], login: ServerLoginView["state"] | undefined): (typeof STATES)[ServerView["state"]] {
  return state !== "held" && state !== "disabled" && (login === "needed" || login === "pending") ? SIGN_INS[login] : STATES[state];
}

export interface RestartButton {
  readonly word: string;
  /** What it does, or why it is off. */
  readonly title: string;
  readonly isOff: boolean;
}

/** What does not run cannot be restarted. After a failure the next use waits for a while, unless a person says otherwise. */
export function restartButton(state: ServerView["state"]): RestartButton {
  if (state === "running" || state === "starting") return { word: "Restart", title: "End its processes; the next use starts it again", isOff: false };
  if (state === "failed") return { word: "Retry", title: "The next use starts it at once, without the delay after a failure", isOff: false };
  return { word: "Restart", title: `It does not run. ${STATES[state].says}`, isOff: true };
}

/** Everything that a search of servers looks at. */
export function serverWords({ name, target, state, problem, tools, clients, variables }: ServerView): string {
  return [name, target, STATES[state].word, problem, ...tools.map((tool) => tool.name), ...clients, ...variables].join("\n");
}

/** `KEY=VALUE` on each line; the first line that is not is returned instead. */
export function readVariables(text: string): Record<string, string> | string {
  const found: Record<string, string> = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) return line;
    found[line.slice(0, at)] = line.slice(at + 1);
  }
  return found;
}

/** `Name: value` on each line; the first line that is not is returned instead. */
export function readHeaders(text: string): Record<string, string> | string {
  const found: Record<string, string> = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+)\s*:\s*(.*)$/.exec(line) ?? [];
    if (!name) return line;
    found[name] = value ?? "";
  }
  return found;
}

/** Tools that ask at each call, before the others. */
export function orderTools(tools: readonly ServerToolView[]): ServerToolView[] {
  return [...tools].sort((a, b) => Number(a.state === "known") - Number(b.state === "known"));
}
