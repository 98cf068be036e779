/**
 * When a call was asked, answered, run and ended, and who decided, as short text; pure.
 *
 * Waiting for an answer and running are told apart: a person's thinking is not the command's duration.
 */
import type { CallView } from "../api/types.ts";
import { decidingRule, isUnasked } from "./callText.ts";
import { durationText } from "./duration.ts";
import { agoText } from "./relativeTime.ts";

type Times = Pick<CallView, "status" | "started_at" | "asked_at" | "reviewed_at" | "answered_at" | "answered_by" | "edited" | "ran_at" | "ended_at" | "waited_ms" | "ran_ms" | "allowed_by" | "by">;

/** When it began to run, on the clock of `since`; null if it has not. */
export function runningSince(call: Pick<CallView, "ran_at" | "started_at"> & { readonly since: number }): number | null {
  return call.ran_at === null ? null : call.since + call.ran_at - call.started_at;
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

type Phases = Pick<CallView, "started_at" | "asked_at" | "reviewed_at" | "answered_at" | "ran_at" | "ended_at">;

/** When it waited for a person, until `now` at most: to be allowed, and for the review of its result. As in `store/call_times.py`. */
export function waitSpans(call: Phases, now: number): Span[] {
  const end = call.ended_at ?? now;
  // Until it was allowed, a call that asked has done nothing but wait.
  const before = call.asked_at === null ? [] : [span(call.started_at, Math.min(end, call.ran_at ?? end))];
  const review = call.reviewed_at === null ? [] : [span(call.reviewed_at, Math.min(end, call.answered_at ?? end))];
  return [...before, ...review];
}

/** When it ran, until its result was reviewed; null if it never did. */
export function ranSpan(call: Phases, now: number): Span | null {
  return call.ran_at === null ? null : span(call.ran_at, call.reviewed_at ?? call.ended_at ?? now);
}

export function waitedMs(call: Phases, now: number): number {
  return waitSpans(call, now).reduce((sum, one) => sum + spanMs(one), 0);
}

export function spanMs(one: Span | null): number {
  return one === null ? 0 : one.to - one.from;
}

function span(from: number, to: number): Span {
  return { from, to: Math.max(from, to) };
}

/** Whether a person was asked, about the call or about its result. */
export function isAsked(call: Pick<CallView, "asked_at" | "reviewed_at">): boolean {
  return call.asked_at !== null || call.reviewed_at !== null;
}

/** `ran 0.1 s`, `waited 1:49`: only what the call really did. */
export function timeParts(call: Pick<Times, "asked_at" | "reviewed_at" | "ran_at" | "waited_ms" | "ran_ms">): string[] {
  return [...(call.ran_at === null ? [] : [`ran ${durationText(call.ran_ms)}`]), ...(isAsked(call) ? [`waited ${durationText(call.waited_ms)}`] : [])];
}

/** Who decided: `allowed by you`, `allowed by “reads in the workspace”`; empty if nobody did. */
export function deciderText(call: Times, named: (rule: string) => string = (rule) => rule): string {
  const rule = decidingRule(call);
  const verb = call.status === "denied" ? "denied" : "allowed";
  if (isUnasked(call)) return "you were not asked";
  if (rule) return `${verb} by ${quoted(named(rule))}`;
  if (call.answered_by === null || (call.ran_at === null && call.status !== "denied")) return "";
  return `${verb} by ${actorText(call.answered_by, named)}${call.edited ? ", edited" : ""}`;
}

/** The words of a rule as a name; a pattern in backticks is one already. */
function quoted(words: string): string {
  return words.includes("`") ? words : `“${words}”`;
}

/** An actor for the reader, who is the person. */
export function actorText(by: string, named: (rule: string) => string = (rule) => rule): string {
  if (by.startsWith("rule ")) return named(by.slice("rule ".length));
  if (by === "a person" || by === "a person on the page") return "you";
  return by.replace(/^a person on /, "you on ");
}

/** `14:03` today, `Nov 17 14:03` on another day, with the year where it differs. */
export function timeOfDay(at: number, now = Date.now()): string {
  const then = new Date(at);
  const today = new Date(now);
  const clock = `${two(then.getHours())}:${two(then.getMinutes())}`;
  if (then.toDateString() === today.toDateString()) return clock;
  const day = `${MONTHS[then.getMonth()]} ${then.getDate()}`;
  return then.getFullYear() === today.getFullYear() ? `${day} ${clock}` : `${day} ${then.getFullYear()}`;
}

/** `14:03:22`. */
export function exactTime(at: number): string {
  const then = new Date(at);
  return [then.getHours(), then.getMinutes(), then.getSeconds()].map(two).join(":");
}

/** `18 Nov 2026, 14:03:22, 5 min ago`. */
export function fullTime(at: number, now = Date.now()): string {
  const then = new Date(at);
  return `${then.getDate()} ${MONTHS[then.getMonth()]} ${then.getFullYear()}, ${exactTime(at)}, ${agoText(now - at)}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** A review as the result of its call has it. */
export interface SentReview {
  /** `kept 1 of 3 hunks, edited 1`. */
  readonly summary: string;
  /** From the proposed to the written content; empty if they are equal. */
  readonly patch: string;
  readonly comments: readonly { readonly line: number; readonly on: string; readonly text: string }[];
}

/** The review in the data of a result; null if there was none. */
export function sentReview(data: unknown): SentReview | null {
  if (typeof data !== "object" || data === null) return null;
  const { hunks, kept, partly, edited, patch, comments } = data as Readonly<Record<string, unknown>>;
  if (typeof hunks !== "number" || typeof kept !== "number") return null;
  const counts = [`kept ${kept} of ${hunks} ${hunks === 1 ? "hunk" : "hunks"}`, partly ? `${String(partly)} in part` : "", edited ? `edited ${String(edited)}` : ""];
  return { summary: counts.filter(Boolean).join(", "), patch: typeof patch === "string" ? patch : "", comments: Array.isArray(comments) ? (comments as SentReview["comments"]) : [] };
}
