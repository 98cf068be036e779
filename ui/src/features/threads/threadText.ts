/**
 * Texts about threads: state, folder, settings, usage; pure.
 *
 * Reads the thread's state as the daemon stores it.
 */
import type { Json, Message, SearchHit, Stop, ThreadView } from "../../api/types.ts";
import type { Sign, StatusLabel, Tone } from "../../lib/callText.ts";

export interface ThreadGroup {
  readonly workspace: string | null;
  readonly name: string;
  readonly threads: readonly ThreadView[];
}

/** Whether a thread is the one that the first start creates, and nobody has written in it. */
export function isUntouched({ title, workspace, messages }: Pick<ThreadView, "title" | "workspace" | "messages">): boolean {
  return title === "Default" && workspace === null && messages === 0;
}

/** Grouped by folder; the most recently active folder first. */
export function groupThreads(threads: readonly ThreadView[]): ThreadGroup[] {
  const groups = new Map<string | null, ThreadView[]>();
  for (const thread of threads) groups.set(thread.workspace, [...(groups.get(thread.workspace) ?? []), thread]);
  return [...groups].map(([workspace, list]) => ({ workspace, name: folderName(workspace), threads: list }));
}

export function folderName(workspace: string | null): string {
  return workspace?.split("/").filter(Boolean).at(-1) ?? "no folder";
}

export function threadTitle({ title }: Pick<ThreadView, "title">): string {
  return title.trim() || "Untitled";
}

/** The state of a thread in a list. */
export function threadStatus({ operation, queued, stop }: Pick<ThreadView, "operation" | "queued" | "stop">, needs: boolean): StatusLabel {
  if (needs) return { sign: "needs", tone: "amber", word: "needs you" };
  if (operation) return { sign: "running", tone: "blue", word: "running" };
  if (queued) return { sign: "expired", tone: "violet", word: `${queued} queued` };
  return stop ? stopStatus(stop) : { sign: "done", tone: "grey", word: "" };
}

const STOPS: Record<Stop, readonly [Sign, Tone, string]> = {
  end_turn: ["done", "grey", ""],
  max_tokens: ["gone", "amber", "stopped at its token limit"],
  max_turn_requests: ["gone", "amber", "stopped at its limit of steps"],
  refusal: ["denied", "red", "refused"],
  cancelled: ["cancelled", "grey", "cancelled"],
  failed: ["failed", "red", "failed"],
  interrupted: ["gone", "violet", "interrupted"],
  steered: ["done", "grey", ""],
};

export function stopStatus(stop: Stop): StatusLabel {
  const [sign, tone, word] = STOPS[stop];
  return { sign, tone, word };
}

export interface AgentSetting {
  readonly setting: "mode" | "option";
  readonly id: string;
  readonly name: string;
  readonly note: string;
  readonly value: string | boolean;
  readonly choices: readonly { readonly value: string; readonly word: string; readonly note: string; readonly group: string }[];
}

/** The modes and options that the agent offers; a mode is one control, in either ACP form. */
export function agentSettings(state: Readonly<Record<string, Json>>): AgentSetting[] {
  const options = listed(state.options, "options");
  const mode = options.some(({ category }) => category === "mode") ? null : modeOf(state.modes);
  return [...(mode ? [mode] : []), ...options.map(option).filter(({ value, choices }) => typeof value === "boolean" || choices.length > 0)];
}

function modeOf(modes: Json | undefined): AgentSetting | null {
  const choices = listed(modes, "modes").map((mode) => ({ value: text(mode.id), word: text(mode.name) || text(mode.id), note: text(mode.description), group: "" }));
  return choices.length ? { setting: "mode", id: "", name: "Mode", note: "", value: text(modes?.current), choices } : null;
}

function option(one: Json): AgentSetting {
  const choices = listed(one, "choices").map((each) => ({ value: text(each.value), word: text(each.name) || text(each.value), note: text(each.description), group: text(each.group) }));
  const value = typeof one.value === "boolean" ? one.value : text(one.value);
  return { setting: "option", id: text(one.id), name: text(one.name), note: text(one.description), value, choices };
}

export interface AskingText {
  readonly asks: "commands" | "nobody";
  readonly word: string;
  readonly sentence: string;
  /** The mode that asks about more, and its name; null if the agent offers none. */
  readonly switch: { readonly setting: "mode" | "option"; readonly id: string; readonly value: string; readonly name: string } | null;
}

/** What an agent does without asking in its present mode; null if it asks about everything, or that is not known. */
export function askingText(state: Readonly<Record<string, Json>>, agent: string): AskingText | null {
  const { asks, mode, switch: better } = object(state.asking);
  if (asks !== "nobody" && asks !== "commands") return null;
  const { setting, id, value, name } = object(better);
  return {
    asks,
    word: asks === "nobody" ? "asks nobody" : "asks about commands only",
    sentence: `In its mode “${text(mode)}”, ${agent} ${asks === "nobody" ? "acts without asking" : "changes files without asking"}. What it reports is listed in Calls as unasked.`,
    switch: value === undefined ? null : { setting: setting === "option" ? "option" : "mode", id: text(id), value: text(value), name: text(name) },
  };
}

/** What happens to a message that is sent while the agent works. */
export type WhileWorking = "steer" | "queue" | "replace";

/** Whether the thread's agent takes messages while it works; the recipient of the message may be another one. */
export function canSteer(state: Readonly<Record<string, Json>>, agent: string): boolean {
  return state.agent?.name === agent && state.agent.steers === true;
}

/** What is done: an agent that cannot be steered gets the message later, and a slash command is always a turn of its own. */
export function whileWorking(chosen: WhileWorking, steers: boolean, text: string): WhileWorking {
  return chosen === "steer" && (!steers || text.startsWith("/")) ? "queue" : chosen;
}

/** What that means, in one sentence. */
export function whileWorkingText(does: WhileWorking, steers: boolean, agent: string): string {
  if (does === "steer") return `${agent} reads this now, while it works.`;
  if (does === "replace") return `Stops what ${agent} does, then sends this.`;
  return steers ? `${agent} gets this when it has finished.` : `${agent} takes no message while it works. It gets this when it has finished.`;
}

/** How a thread that is a fork, or was a session of its agent, got its messages to the agent; empty for other threads. */
export function originText(state: Readonly<Record<string, Json>>): string {
  return text(state.origin?.sentence);
}

/** The messages that an agent was given while it worked. */
export function steeredMessages(messages: readonly Pick<Message, "id" | "role" | "stop">[]): Set<string> {
  return new Set(messages.filter(({ role }, at) => role === "user" && messages[at - 1]?.stop === "steered").map(({ id }) => id));
}

export interface SlashCommand {
  readonly name: string;
  readonly description: string;
  readonly hint: string;
}

export function slashCommands(state: Readonly<Record<string, Json>>): SlashCommand[] {
  return listed(state.commands, "commands")
    .map((one) => ({ name: text(one.name), description: text(one.description), hint: text(one.hint) }))
    .filter(({ name }) => name);
}

export interface UsageFigures {
  readonly used: number | null;
  readonly size: number | null;
  readonly cost: string;
}

/** Context size and cost, if the agent reports them. */
export function contextUsage(state: Readonly<Record<string, Json>>): UsageFigures | null {
  const usage = state.usage;
  if (!usage) return null;
  const used = number(usage.used);
  const { amount, currency } = object(usage.cost);
  const cost = money(number(amount), text(currency));
  return !used && !cost ? null : { used, size: number(usage.size) || null, cost };
}

function money(amount: number | null, currency: string): string {
  if (!amount) return "";
  try {
    return amount.toLocaleString("en", { style: "currency", currency: currency || "USD", minimumFractionDigits: 2, maximumFractionDigits: amount < 1 ? 4 : 2 });
  } catch {
    return `${amount} ${currency}`; // an unknown currency is shown as it came
  }
}

/** `940`, `12.3k`, `200k`, `1.2M`. */
export function tokensText(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  const [value, unit] = tokens < 999_950 ? [tokens / 1000, "k"] : [tokens / 1_000_000, "M"];
  return `${value < 100 && value % 1 >= 0.05 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/** Files that a prompt mentions: `@src/auth.py`, at the start of a word and with a path separator or extension. */
export function mentions(prompt: string): string[] {
  const found = [...prompt.matchAll(/(?<![^\s(["'])@([^\s@"'`<>]*[./][^\s@"'`<>]*)/g)].map(([, path]) => (path ?? "").replace(/[.,;:!?)\]]+$/, ""));
  return [...new Set(found)].filter((path) => /[^./]/.test(path)).slice(0, 50);
}

/** The slash command being typed at the beginning of the prompt. */
export function commandPrefix(prompt: string, caret: number): string | null {
  return /^\/(\S*)$/.exec(prompt.slice(0, caret))?.[1] ?? null;
}

/** The path being typed after an `@` before the caret, and where its `@` is. */
export function mentionPrefix(prompt: string, caret: number): { readonly letters: string; readonly at: number } | null {
  const [, letters] = /(?:^|[\s(["'])@([^\s@"'`<>]*)$/.exec(prompt.slice(0, caret)) ?? [];
  return letters === undefined ? null : { letters, at: caret - letters.length - 1 };
}

/** A snippet split into matches and the text around them. */
export function highlightParts({ snippet, marks }: Pick<SearchHit, "snippet" | "marks">): { readonly text: string; readonly hit: boolean }[] {
  const letters = [...snippet]; // by code points, as in the daemon
  const pieces: { text: string; hit: boolean }[] = [];
  let done = 0;
  for (const [from, to] of marks) {
    if (from > done) pieces.push({ text: letters.slice(done, from).join(""), hit: false });
    if (to > Math.max(done, from)) pieces.push({ text: letters.slice(Math.max(done, from), to).join(""), hit: true });
    done = Math.max(done, to);
  }
  if (done < letters.length) pieces.push({ text: letters.slice(done).join(""), hit: false });
  return pieces;
}

function listed(from: Json | undefined, name: string): Json[] {
  const list = from?.[name];
  return (Array.isArray(list) ? list : []).filter((one): one is Json => typeof one === "object" && one !== null && !Array.isArray(one));
}

function object(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
