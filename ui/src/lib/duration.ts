/** Durations and sizes as short text of steady width; pure. */

/** A running clock: `0:42`, `12:07`, `1:02:03`. */
export function clockText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60];
  const hours = Math.floor(seconds / 3600);
  if (hours) return `${hours}:${parts.map(two).join(":")}`;
  return `${parts[0]}:${two(parts[1] ?? 0)}`;
}

/** How long something took: `12 ms`, `4.2 s`, `1:07`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  return clockText(ms);
}

/** For a screen reader: `1 minute 7 seconds`. */
export function spokenText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const parts = [pluralize(Math.floor(seconds / 3600), "hour"), pluralize(Math.floor(seconds / 60) % 60, "minute")];
  const said = [...parts.filter((part) => !part.startsWith("0 ")), pluralize(seconds % 60, "second")];
  return said.slice(0, 2).join(" ");
}

/** Calls that take longer turn amber, then red. */
const LONG_MS = 60_000;
const TOO_LONG_MS = 300_000;

/** Three times the p95 of such calls is long, however short. */
const UNUSUAL = 3;

export function urgency(ms: number, p95 = Infinity): "calm" | "long" | "too-long" {
  if (ms > TOO_LONG_MS) return "too-long";
  return ms > LONG_MS || ms > UNUSUAL * Math.max(p95, 1000) ? "long" : "calm";
}

/** `usual 0:40`: the median of such calls, in the timer's format. */
export function typicalText(median: number): string {
  return `usual ${median < 1000 ? "< 0:01" : clockText(median)}`;
}

export function sizeText(bytes: number): string {
  if (bytes < 1000) return pluralize(bytes, "byte");
  const units = ["kB", "MB", "GB"];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 999.95 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function pluralize(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
