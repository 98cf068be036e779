/**
 * Texts about rules: subject, scope, effect on past calls; pure.
 *
 * The rules are evaluated in the daemon.
 */
import type { Claim, Effect, ProposedView, Rule, RuleBody, RuleView, Scope, Suggestion, TestView, Verdict } from "../../api/types.ts";
import type { Sign, Tone } from "../../lib/callText.ts";
import { actorText } from "../../lib/callTimes.ts";
import { pluralize } from "../../lib/duration.ts";

export const RULE_SUBJECTS = ["command", "path", "host", "tool"] as const;
/** The subject of a rule; `tool` covers every call of one tool. */
export type RuleSubject = (typeof RULE_SUBJECTS)[number];

export const SCOPES: readonly { readonly scope: Scope; readonly word: string; readonly says: string }[] = [
  { scope: "session", word: "Session", says: "This agent, until its session ends" },
  { scope: "project", word: "Project", says: "Every agent in this folder" },
  { scope: "user", word: "User", says: "Every agent in every trusted folder" },
];

const HOUR = 3600;
export const EXPIRIES: readonly { readonly word: string; readonly seconds: number | null }[] = [
  { word: "never expires", seconds: null },
  { word: "for 1 hour", seconds: HOUR },
  { word: "for 8 hours", seconds: 8 * HOUR },
  { word: "for 1 day", seconds: 24 * HOUR },
  { word: "for 7 days", seconds: 7 * 24 * HOUR },
  { word: "for 30 days", seconds: 30 * 24 * HOUR },
];

export const EFFECT_STYLES: Record<Effect, { readonly sign: Sign; readonly tone: Tone; readonly word: string; readonly does: string }> = {
  deny: { sign: "denied", tone: "red", word: "deny", does: "denied" },
  ask: { sign: "needs", tone: "amber", word: "ask", does: "asks" },
  allow: { sign: "rule", tone: "green", word: "allow", does: "allowed" },
};

/** Everything that a search of rules looks at: what a row says. */
export function ruleWords({ rule, words, added_by }: RuleView): string {
  return [EFFECT_STYLES[rule.effect].word, rule.id, words, scopeText(rule), rule.workspace, rule.source, rule.note, added_by && actorText(added_by)].filter(Boolean).join("\n");
}

export function ruleSubject(rule: RuleBody): RuleSubject {
  return rule.command ?? rule.pattern ? "command" : rule.path ? "path" : rule.host ? "host" : "tool";
}

export function rulePattern(rule: RuleBody): string {
  return rule.command ?? rule.path ?? rule.host ?? rule.pattern ?? "";
}

/** The rule with another subject; the old one is dropped. */
export function withPattern(rule: RuleBody, about: RuleSubject, pattern: string): RuleBody {
  const { command: _, path: __, host: ___, pattern: ____, ...rest } = rule;
  return about === "tool" ? rest : { ...rest, [about]: pattern };
}

/** The request body that restores a revoked rule. A session's rule and a disabled one cannot be restored as they were. */
export function ruleBody(rule: Rule, now: number): RuleBody | null {
  if (rule.scope === "session" || rule.disabled) return null;
  const { id: _, session: __, source: ___, disabled: ____, rank: _____, expires_at, arguments: given, ...rest } = rule;
  const left = expires_at === null || expires_at === undefined ? null : Math.ceil((expires_at - now) / 1000);
  if (left !== null && left <= 0) return null;
  return { ...rest, arguments: Object.fromEntries(given ?? []), expires_in: left };
}

/** `name = glob` on each line, of a call of an MCP server. A line without `=` names an argument that may be anything. */
export function readArguments(text: string): Record<string, string> {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => (line.includes("=") ? [line.slice(0, line.indexOf("=")).trim(), line.slice(line.indexOf("=") + 1).trim()] : [line, "**"])));
}

export function argumentText(given: RuleBody["arguments"]): string {
  return Object.entries(given ?? {}).map(([name, glob]) => `${name} = ${glob}`).join("\n");
}

/** The rule's effect on past calls, as text. */
export function proposalText({ matches, calls, decided, prompts }: ProposedView): string {
  const seen = calls ? `matches ${matches} of your last ${pluralize(calls, "call")}` : "there are no calls yet to judge it by";
  if (!prompts) return seen;
  return `${seen} · would have decided ${decided} of your last ${pluralize(prompts, "question")}`;
}

/** One line of the "Always allow…" form: a suggested rule, and the claims it covers. */
export interface SuggestionLine {
  readonly suggestion: Suggestion;
  /** Alternative rules for the same claims. */
  readonly others: readonly Suggestion[];
}

/** The first suggestion for each claim, with its alternatives. */
export function suggestionLines(suggestions: readonly Suggestion[]): SuggestionLine[] {
  const covered = new Set<number>();
  const found: { suggestion: Suggestion; others: Suggestion[] }[] = [];
  for (const suggestion of suggestions) {
    const line = found.find((one) => one.suggestion.claims.join() === suggestion.claims.join());
    if (line) line.others.push(suggestion);
    else if (suggestion.claims.length === 0 || suggestion.claims.some((claim) => !covered.has(claim))) found.push({ suggestion, others: [] });
    for (const claim of suggestion.claims) covered.add(claim);
  }
  return found;
}

/** Claims that ask and have no suggested rule. */
export function uncoveredClaims(claims: readonly Claim[], verdicts: readonly Verdict[], suggested: readonly SuggestionLine[]): { claim: Claim; why: string }[] {
  const covered = new Set(suggested.flatMap(({ suggestion }) => suggestion.claims));
  return verdicts
    .filter(({ claim, effect }) => effect !== "allow" && !covered.has(claim))
    .flatMap(({ claim, why }) => (claims[claim] ? [{ claim: claims[claim], why: claims[claim].opaque || why }] : []));
}

export interface RuleGroup {
  readonly title: string;
  readonly says: string;
  readonly rules: readonly { readonly number: number; readonly view: RuleView }[];
}

const TITLES: Record<Effect, readonly [string, string]> = {
  deny: ["Deny", "A match denies the call. Nothing overrides it."],
  ask: ["Ask", "A match asks you, even if a rule below would allow."],
  allow: ["Allow", "The first match allows the call."],
};
const FLOORS = ["Built-in limits", "No rule of yours overrides them."] as const;
const DEFAULTS = ["Built-in defaults", "They apply where no rule of yours matches."] as const;

/** In order of evaluation; adjacent rules of one kind are grouped, numbers continue. */
export function groupRules(rules: readonly RuleView[]): RuleGroup[] {
  const groups: { key: string; title: string; says: string; rules: { number: number; view: RuleView }[] }[] = [];
  rules.forEach((view, at) => {
    const below = rules.slice(0, at).some(({ builtin, rule }) => (builtin && rule.effect === "allow") || (!builtin && rule.effect === "allow"));
    const [title, says] = !view.builtin ? TITLES[view.rule.effect] : below || view.rule.effect === "allow" ? DEFAULTS : FLOORS;
    const last = groups.at(-1);
    if (last?.key === title) last.rules.push({ number: at + 1, view });
    else groups.push({ key: title, title, says, rules: [{ number: at + 1, view }] });
  });
  return groups;
}

/** Before which rule of its effect and scope a rule comes if it moves one step; null: behind all. Undefined: it cannot. */
export function moveTarget(shown: readonly RuleView[], one: RuleView, step: -1 | 1): { readonly before: string | null } | undefined {
  const alike = shown.filter(({ removable, rule }) => removable && rule.effect === one.rule.effect && rule.scope === one.rule.scope);
  const at = alike.findIndex(({ rule }) => rule.id === one.rule.id);
  if (at < 0 || !alike[at + step]) return undefined;
  return { before: alike[step < 0 ? at - 1 : at + 2]?.rule.id ?? null };
}

/** A rule without a match for this long counts as unused. */
const LONG_UNUSED_MS = 30 * 24 * HOUR * 1000;
/** New rules are exempt for this long. */
const NEW_MS = 24 * HOUR * 1000;

export function isUnused({ removable, hits, last_used_at, added_at }: RuleView, now: number): boolean {
  if (!removable) return false;
  if (!hits) return added_at !== null && now - added_at > NEW_MS;
  return last_used_at !== null && now - last_used_at > LONG_UNUSED_MS;
}

/** Link to a rule on the page. */
export function ruleHref(name: string): string {
  return `/rules#${encodeURIComponent(name)}`;
}

/** A decision as text: `ask, by rule 4`. */
export function decisionText(test: Pick<TestView, "effect" | "rule">, numbers: ReadonlyMap<string, number>): string {
  const number = numbers.get(test.rule);
  return `${test.effect}, by ${number ? `rule ${number}` : test.rule}`;
}

export function scopeText(rule: Pick<Rule, "scope" | "workspace">): string {
  const folder = rule.workspace?.split("/").filter(Boolean).at(-1);
  return folder ? `${rule.scope} ${folder}` : rule.scope;
}
