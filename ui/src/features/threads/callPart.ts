/**
 * The data of a `call` part: the agent's report, and the tracked call if there is one; pure.
 *
 * Mirrors the part's schema in the daemon. Absent fields are empty, since agents omit some.
 */
import type { Json, Part } from "../../api/types.ts";
import type { Sign, StatusLabel, Tone } from "../../lib/callText.ts";

export type Content =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "diff"; readonly path: string; readonly old: string | null; readonly new: string }
  | { readonly kind: "terminal"; readonly terminal: string }
  | { readonly kind: "image"; readonly image: string; readonly mime: string };

export interface CallData {
  readonly id: string;
  readonly title: string;
  readonly sort: string;
  readonly status: string;
  /** The tracked call's id. */
  readonly call: string | null;
  readonly tool: string;
  readonly locations: readonly { readonly path: string; readonly line?: number }[];
  readonly content: readonly Content[];
  readonly input: unknown;
  readonly output: unknown;
}

export function callData({ data }: Pick<Part, "data">): CallData {
  const list = <T>(name: string): readonly T[] => (Array.isArray(data[name]) ? (data[name] as unknown as readonly T[]) : []);
  const word = (name: string): string => (typeof data[name] === "string" ? data[name] : "");
  return {
    id: word("id"), title: word("title"), sort: word("sort") || "other", status: word("status") || "pending", call: word("call") || null, tool: word("tool"),
    locations: list("locations"), content: list("content"), input: data.input ?? null, output: data.output ?? null,
  };
}

const STATUS: Record<string, readonly [Sign, Tone, string]> = {
  pending: ["running", "grey", "pending"],
  in_progress: ["running", "blue", "running"],
  completed: ["done", "green", "done"],
  failed: ["failed", "red", "failed"],
  cancelled: ["cancelled", "grey", "cancelled"],
};

/** The state that the agent reports. */
export function agentCallStatus({ status }: Pick<CallData, "status">): StatusLabel {
  const [sign, tone, word] = STATUS[status] ?? ["gone", "grey", status];
  return { sign, tone, word };
}

/** Formatted JSON, or "" if it is empty. */
export function formatJson(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  const text = JSON.stringify(value, null, 2);
  return text === "{}" || text === "[]" ? "" : text;
}

export interface PlanEntry {
  readonly content: string;
  readonly status: string;
  readonly priority: string;
}

export function parsePlan(data: Json): PlanEntry[] {
  const entries = Array.isArray(data.entries) ? (data.entries as Json[]) : [];
  return entries.map(({ content, status, priority }) => ({ content: String(content ?? ""), status: String(status ?? "pending"), priority: String(priority ?? "") }));
}
