/** What the command palette offers, and which of it matches the typed words; pure. */
import type { IconName } from "../../components/Icon.svelte";

export interface PaletteItem {
  readonly id: string;
  readonly group: "Actions" | "Settings" | "Calls" | "Threads" | "Terminals";
  readonly icon: IconName;
  readonly text: string;
  /** A second text, in a quiet colour: a folder, a key, a status. */
  readonly note: string;
  readonly act: () => void;
}

/** In each group, so that no group hides the others. */
const MOST = 7;

/** Items that have every typed word at the beginning of one of theirs come first, then those that have it anywhere. */
export function matchItems(items: readonly PaletteItem[], typed: string): PaletteItem[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const scored = items.flatMap((item) => {
    const text = `${item.text} ${item.note}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) return [];
    return [{ item, score: words.every((word) => text.split(/[\s/:.-]+/).some((one) => one.startsWith(word))) ? 0 : 1 }];
  });
  const sorted = scored.sort((a, b) => a.score - b.score).map(({ item }) => item);
  const counts = new Map<string, number>();
  return sorted.filter(({ group }) => {
    const count = (counts.get(group) ?? 0) + 1;
    counts.set(group, count);
    return count <= MOST;
  });
}
