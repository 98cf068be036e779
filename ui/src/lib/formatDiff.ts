/** Formats two texts as a unified diff for components/Diff.svelte; pure. Used for changes that an agent reports. */
import { CONTEXT, type Hunk, splitIntoHunks } from "./hunks.ts";

export interface UnifiedDiff {
  readonly diff: string;
  readonly added: number;
  readonly removed: number;
}

export function formatUnifiedDiff(before: string, after: string): UnifiedDiff {
  const whole = splitIntoHunks(before, after);
  const lines = whole.hunks.flatMap((hunk) => hunkLines(whole.before, whole.after, hunk));
  const count = (sign: string): number => lines.filter((line) => line.startsWith(sign)).length;
  return { diff: lines.map((line) => (line.endsWith("\n") ? line : `${line}\n`)).join(""), added: count("+"), removed: count("-") };
}

function hunkLines(before: readonly string[], after: readonly string[], { old, new: fresh, changes }: Hunk): string[] {
  const from = Math.max(0, old[0] - CONTEXT);
  const to = Math.min(before.length, old[1] + CONTEXT);
  const begin = fresh[0] - (old[0] - from);
  const [olds, news] = [to - from, fresh[1] + (to - old[1]) - begin];
  const lines = [`@@ -${olds ? from + 1 : from},${olds} +${news ? begin + 1 : begin},${news} @@`];
  let done = from;
  for (const change of changes) {
    lines.push(...before.slice(done, change.old[0]).map((line) => ` ${line}`));
    lines.push(...before.slice(...change.old).map((line) => `-${line}`), ...after.slice(...change.new).map((line) => `+${line}`));
    done = change.old[1];
  }
  return [...lines, ...before.slice(done, to).map((line) => ` ${line}`)];
}
