/** The lines of the table of calls: headings of days, calls, and repeats folded into one line; pure. */
import type { CallView } from "../../api/types.ts";
import { isCode } from "../../lib/callText.ts";

export type TableLine =
  | { readonly kind: "day"; readonly key: string; readonly at: number }
  | { readonly kind: "call"; readonly key: string; readonly call: CallView; readonly inFold: boolean }
  | { readonly kind: "fold"; readonly key: string; readonly calls: readonly CallView[]; readonly open: boolean };

/** Fewer repeats are shown one by one. */
const FOLD_MIN = 4;

interface Options {
  /** The call before the first one, if it is known. */
  readonly before: CallView | undefined;
  /** Only in the order of time are there days and repeats. */
  readonly grouped: boolean;
  readonly isOpen: (fold: string) => boolean;
}

/** The lines of one page of calls. */
export function tableLines(calls: readonly CallView[], { before, grouped, isOpen }: Options): TableLine[] {
  if (!grouped) return calls.map((call) => lineOf(call));
  const lines: TableLine[] = [];
  let last = before;
  for (let at = 0; at < calls.length; ) {
    const call = calls[at];
    if (!call) break;
    if (!last || dayOf(last.started_at) !== dayOf(call.started_at)) lines.push({ kind: "day", key: `day-${call.id}`, at: call.started_at });
    const run = repeatsFrom(calls, at);
    if (run.length >= FOLD_MIN) lines.push(...foldLines(run, isOpen));
    else lines.push(...run.map((one) => lineOf(one)));
    at += run.length;
    last = run.at(-1);
  }
  return lines;
}

function lineOf(call: CallView, inFold = false): TableLine {
  return { kind: "call", key: call.id, call, inFold };
}

/** The key of a fold is that of its oldest call: newer repeats join it. */
function foldLines(calls: readonly CallView[], isOpen: Options["isOpen"]): TableLine[] {
  const key = `fold-${calls.at(-1)?.id ?? ""}`;
  const open = isOpen(key);
  return [{ kind: "fold", key, calls, open }, ...(open ? calls.map((call) => lineOf(call, true)) : [])];
}

/** The call at a position, and those after it that repeat it on the same day. */
function repeatsFrom(calls: readonly CallView[], at: number): CallView[] {
  const first = calls[at];
  const run = first ? [first] : [];
  for (const call of calls.slice(at + 1)) {
    if (!first || repeatKey(call) === null || repeatKey(call) !== repeatKey(first) || dayOf(call.started_at) !== dayOf(first.started_at)) break;
    run.push(call);
  }
  return run;
}

/** Calls with the same key repeat each other; null for calls that need attention. A command repeats only itself. */
function repeatKey(call: CallView): string | null {
  if (call.status === "waiting" || call.status === "running") return null;
  return [call.caller.key, call.tool, call.status, call.exit_code, call.signal, call.thread, isCode(call) || call.tool === "client_work" ? call.title : ""].join("\n");
}

/** The day that was asked about last: neighbours in a list are mostly of one day, and a date is slow to make. */
let known = { from: 0, to: 0, day: "" };

export function dayOf(at: number): string {
  if (at >= known.from && at < known.to) return known.day;
  const then = new Date(at);
  const [year, month, date] = [then.getFullYear(), then.getMonth(), then.getDate()];
  known = { from: new Date(year, month, date).getTime(), to: new Date(year, month, date + 1).getTime(), day: then.toDateString() };
  return known.day;
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/** `Today`, `Yesterday`, `Tuesday 17 November`, with the year where it differs. */
export function dayText(at: number, now = Date.now()): string {
  const then = new Date(at);
  if (dayOf(at) === dayOf(now)) return "Today";
  const yesterday = new Date(now);
  yesterday.setDate(yesterday.getDate() - 1);
  if (dayOf(at) === dayOf(yesterday.getTime())) return "Yesterday";
  const year = then.getFullYear() === new Date(now).getFullYear() ? "" : ` ${then.getFullYear()}`;
  return `${DAYS[then.getDay()]} ${then.getDate()} ${MONTHS[then.getMonth()]}${year}`;
}

/** What repeats: the title if it is always the same, otherwise its first word. */
export function foldTitle(calls: readonly CallView[]): string {
  const titles = new Set(calls.map(({ title }) => title));
  const [first = ""] = titles;
  return titles.size === 1 ? first : (first.split(/\s/, 1)[0] ?? first);
}
