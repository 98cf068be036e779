/**
 * Patience diff of two sequences (lines or words), in bounded time; pure.
 *
 * Unique items are the anchors; a small LCS table compares the stretches between them.
 */

/** Start and end (exclusive). */
export type Span = readonly [number, number];

/** A replaced range; either side may be empty. */
export interface SequenceChange {
  readonly old: Span;
  readonly new: Span;
}

/** For larger tables the whole range counts as changed. */
const TABLE_MAX = 1_000_000;
/** Maximum recursion depth. */
const DEPTH_MAX = 32;

export function diffSequences(before: readonly string[], after: readonly string[]): SequenceChange[] {
  const found: SequenceChange[] = [];
  compare({ before, after, found }, [0, before.length], [0, after.length], 0);
  return found;
}

interface Work {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly found: SequenceChange[];
}

function compare(work: Work, [a, aEnd]: Span, [b, bEnd]: Span, depth: number): void {
  const { before, after, found } = work;
  while (a < aEnd && b < bEnd && before[a] === after[b]) a++, b++;
  while (a < aEnd && b < bEnd && before[aEnd - 1] === after[bEnd - 1]) aEnd--, bEnd--;
  if (a === aEnd && b === bEnd) return;
  if (a === aEnd || b === bEnd) return note(found, [a, aEnd], [b, bEnd]);
  const anchors = depth < DEPTH_MAX ? onceOnEach(work, [a, aEnd], [b, bEnd]) : [];
  const pairs = anchors.length ? anchors : longest(work, [a, aEnd], [b, bEnd]);
  if (!pairs.length) return note(found, [a, aEnd], [b, bEnd]);
  for (const [left, right] of [...pairs, [aEnd, bEnd] as const]) {
    if (anchors.length) compare(work, [a, left], [b, right], depth + 1);
    else if (a < left || b < right) note(found, [a, left], [b, right]);
    a = left + 1;
    b = right + 1;
  }
}

/** Adjacent changes are merged. */
function note(found: SequenceChange[], old: Span, fresh: Span): void {
  const last = found.at(-1);
  if (last && last.old[1] === old[0] && last.new[1] === fresh[0]) found[found.length - 1] = { old: [last.old[0], old[1]], new: [last.new[0], fresh[1]] };
  else found.push({ old, new: fresh });
}

type Pair = readonly [number, number];

/** The longest increasing run of items that are unique on both sides. */
function onceOnEach({ before, after }: Work, old: Span, fresh: Span): Pair[] {
  const left = once(before, old);
  const right = once(after, fresh);
  const pairs: Pair[] = [];
  for (const [text, at] of left) {
    const other = at < 0 ? undefined : right.get(text);
    if (other !== undefined && other >= 0) pairs.push([at, other]);
  }
  return rising(pairs);
}

/** The index of each item; -1 if it occurs more than once. */
function once(texts: readonly string[], [from, to]: Span): Map<string, number> {
  const places = new Map<string, number>();
  for (let at = from; at < to; at++) {
    const text = texts[at] ?? "";
    places.set(text, places.has(text) ? -1 : at);
  }
  return places;
}

/** Longest increasing subsequence, by patience sorting. */
function rising(pairs: readonly Pair[]): Pair[] {
  const sorted = [...pairs].sort((one, other) => one[0] - other[0]);
  const tops: number[] = [];
  const previous: number[] = [];
  sorted.forEach(([, value], index) => {
    let low = 0;
    let high = tops.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[tops[middle] ?? 0]?.[1] ?? 0) < value) low = middle + 1;
      else high = middle;
    }
    previous.push(low ? (tops[low - 1] ?? -1) : -1);
    tops[low] = index;
  });
  const chosen: Pair[] = [];
  for (let index = tops.at(-1) ?? -1; index >= 0; index = previous[index] ?? -1) chosen.push(sorted[index] as Pair);
  return chosen.reverse();
}

/** Longest common subsequence, for small tables. */
function longest({ before, after }: Work, [a, aEnd]: Span, [b, bEnd]: Span): Pair[] {
  const width = bEnd - b + 1;
  const height = aEnd - a + 1;
  if (width * height > TABLE_MAX) return [];
  const table = new Uint16Array(width * height);
  for (let i = height - 2; i >= 0; i--)
    for (let j = width - 2; j >= 0; j--)
      table[i * width + j] =
        before[a + i] === after[b + j] ? at(table, (i + 1) * width + j + 1) + 1 : Math.max(at(table, (i + 1) * width + j), at(table, i * width + j + 1));
  const pairs: Pair[] = [];
  for (let i = 0, j = 0; i < height - 1 && j < width - 1; )
    if (before[a + i] === after[b + j]) pairs.push([a + i++, b + j++]);
    else if (at(table, (i + 1) * width + j) >= at(table, i * width + j + 1)) i++;
    else j++;
  return pairs;
}

function at(table: Uint16Array, index: number): number {
  return table[index] ?? 0;
}

/** The old index of an item of the new sequence, or of the item it replaces; counted from 0. */
export function originalIndex(all: readonly SequenceChange[], index: number): number {
  let shift = 0;
  for (const { old, new: fresh } of all) {
    if (index < fresh[0]) break;
    if (index < fresh[1]) return Math.min(old[0] + index - fresh[0], Math.max(old[0], old[1] - 1));
    shift = old[1] - fresh[1];
  }
  return index + shift;
}
