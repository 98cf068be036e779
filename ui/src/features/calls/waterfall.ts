/** The lanes of the waterfall: calls of one agent or thread on a time axis, and how long they waited; pure. */
import type { CallView } from "../../api/types.ts";
import { ranSpan, type Span, waitSpans } from "../../lib/callTimes.ts";
import { isPoll } from "../inbox/sections.ts";

export type { Span };

export interface Bar {
  readonly call: CallView;
  /** Calls that overlap are drawn below each other. */
  readonly row: number;
  /** To be allowed, and for the review of its result. */
  readonly waited: readonly Span[];
  readonly ran: Span | null;
  readonly all: Span;
}

export interface Lane {
  readonly key: string;
  readonly bars: readonly Bar[];
  readonly rows: number;
  /** Milliseconds in which at least one call waited for the person, and in which the lane was at work. */
  readonly waited: number;
  readonly active: number;
}

/** A longer pause between two calls is not work: the agent had nothing to do. */
const PAUSE_MS = 10 * 60_000;

/** Lanes of work: a call that only asks about another one is none. */
export function buildLanes(calls: readonly CallView[], keyOf: (call: CallView) => string, now: number): Lane[] {
  const lanes = new Map<string, CallView[]>();
  for (const call of calls.filter((one) => !isPoll(one)).sort((a, b) => a.started_at - b.started_at)) lanes.set(keyOf(call), [...(lanes.get(keyOf(call)) ?? []), call]);
  return [...lanes].map(([key, own]) => buildLane(key, own, now)).sort((a, b) => latest(b) - latest(a));
}

function buildLane(key: string, calls: readonly CallView[], now: number): Lane {
  const ends: number[] = [];
  const bars = calls.map((call): Bar => {
    const all = { from: call.started_at, to: Math.max(call.started_at, call.ended_at ?? now) };
    const [waited, ran] = [waitSpans(call, all.to), ranSpan(call, all.to)];
    const free = ends.findIndex((end) => end <= all.from);
    const row = free < 0 ? ends.length : free;
    ends[row] = all.to;
    return { call, row, waited, ran, all };
  });
  return { key, bars, rows: ends.length, waited: union(bars.flatMap(({ waited }) => waited), 0), active: union(bars.map(({ all }) => all), PAUSE_MS) };
}

function latest({ bars }: Lane): number {
  return Math.max(...bars.map(({ all }) => all.to));
}

/** The time that spans cover together; pauses up to `pause` between them count too. */
export function union(spans: readonly Span[], pause: number): number {
  let total = 0;
  let end = -Infinity;
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const begin = from - end <= pause ? end : Math.max(from, end);
    if (to > begin) total += to - begin;
    end = Math.max(end, to);
  }
  return total;
}

/** `waited for you 14 of 31 minutes`; empty if nothing waited. */
export function waitedText({ waited, active }: Pick<Lane, "waited" | "active">): string {
  if (waited === 0) return "";
  const seconds = active < 120_000;
  const unit = seconds ? 1000 : 60_000;
  const [part, whole] = [Math.round(waited / unit), Math.max(1, Math.round(active / unit))];
  return `waited for you ${part} of ${whole} ${seconds ? "second" : "minute"}${whole === 1 ? "" : "s"}`;
}

/** The last stretch of work: everything before the latest pause of half an hour is left out at first. */
export function lastStretch(calls: readonly CallView[], now: number): Span {
  const spans = calls.filter((call) => !isPoll(call)).map((call) => ({ from: call.started_at, to: call.ended_at ?? now })).sort((a, b) => b.to - a.to);
  let from = spans[0]?.from ?? now;
  for (const span of spans) {
    if (from - span.to > 3 * PAUSE_MS) break;
    from = Math.min(from, span.from);
  }
  return widened({ from, to: spans[0]?.to ?? now });
}

function widened({ from, to }: Span): Span {
  const margin = Math.max(500, (to - from) * 0.02);
  return { from: from - margin, to: to + margin };
}

/** A window zoomed by a factor around a point, never under a tenth of a second nor over a year. */
export function zoomed({ from, to }: Span, factor: number, around = (from + to) / 2): Span {
  const size = Math.max(100, Math.min(365 * 86_400_000, (to - from) * factor));
  const share = (around - from) / (to - from);
  return { from: around - size * share, to: around + size * (1 - share) };
}

export function panned({ from, to }: Span, share: number): Span {
  const by = (to - from) * share;
  return { from: from + by, to: to + by };
}

const STEPS = [100, 500, 1000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 2 * 3_600_000, 6 * 3_600_000, 12 * 3_600_000, 86_400_000, 2 * 86_400_000, 7 * 86_400_000, 30 * 86_400_000];

/** Round times for the axis, at most `most` of them. */
export function ticks({ from, to }: Span, most: number): number[] {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? 365 * 86_400_000;
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const first = Math.ceil((from - offset) / step) * step + offset;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, at) => first + at * step);
}
