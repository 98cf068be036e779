/** Relative times as short text; pure. */
const STEPS: readonly (readonly [number, string])[] = [
  [60_000, "min"],
  [3_600_000, "h"],
  [86_400_000, "d"],
];

/** `just now`, `5 min ago`, `3 h ago`, `12 d ago`. */
export function agoText(ms: number): string {
  const long = spanText(ms);
  return long ? `${long} ago` : "just now";
}

/** `in 5 min`, `in 3 h`, `in 12 d`; `expired` when it is over. */
export function inText(ms: number): string {
  if (ms <= 0) return "expired";
  return `in ${spanText(ms) || "1 min"}`;
}

function spanText(ms: number): string {
  const step = STEPS.findLast(([size]) => ms >= size);
  if (!step) return "";
  const count = Math.floor(ms / step[0]);
  // A table calls this for each of its rows while it scrolls, and toLocaleString takes as long as drawing one.
  return `${count < 1000 ? count : count.toLocaleString("en")} ${step[1]}`;
}
