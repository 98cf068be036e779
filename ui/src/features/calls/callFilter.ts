/** Edits the text of the search field, which the daemon parses: `status:failed -tool:read_file "a phrase"`; pure. */
import type { Status } from "../../api/types.ts";

export const STATUSES: readonly Status[] = ["waiting", "running", "done", "failed", "denied", "cancelled", "completed", "interrupted"];

/** Terms end at a space outside quotes. */
const TERMS = /(?:[^\s"]|"[^"]*"?)+/g;

function termsOf(text: string): string[] {
  return text.match(TERMS) ?? [];
}

/** Keys that only calls have. */
const OF_CALLS = /^-?(status|tool|agent|client|risk|by|session|asked|exit|waited|ran|terminal|id):/i;

/** Whether a query is about calls only, so that a search over everything would find nothing else. */
export function isAboutCalls(text: string): boolean {
  return termsOf(text).every((term) => OF_CALLS.test(term));
}

export function hasTerm(text: string, key: string, value: string): boolean {
  return termsOf(text).includes(`${key}:${quoted(value)}`);
}

/** Sets or replaces a key of the query, or removes it if it already has this value. */
export function toggleTerm(text: string, key: string, value: string): string {
  const rest = termsOf(text).filter((term) => !term.startsWith(`${key}:`));
  return (hasTerm(text, key, value) ? rest : [...rest, `${key}:${quoted(value)}`]).join(" ");
}

function quoted(value: string): string {
  return /[\s",]/.test(value) ? `"${value.replaceAll('"', "")}"` : value;
}
