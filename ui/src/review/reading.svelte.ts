/**
 * What a person looks at in a review: the current hunk, what is unfolded, what is being written, the colours that came.
 *
 * Owns the place of eye and hand. It does not know what is decided (draft.svelte.ts).
 */
import type { Draft, Place } from "./draft.svelte.ts";
import { languageOf, loadLanguage } from "./languages.ts";
import type { Token } from "./paint.ts";

/** Rows drawn in one picture's time; a generated file must not stop the page. */
const ROWS_A_PICTURE = 400;
/** More than this are drawn only when asked for. */
export const ROWS_AT_FIRST = 12_000;

export class Reading {
  /** Where all of it is drawn. */
  root: HTMLElement | undefined;
  current = $state(0);
  /** A hunk, or the whole file. */
  editing = $state<number | "file" | null>(null);
  composing = $state.raw<Place | null>(null);
  unfolded = $state.raw<ReadonlySet<number>>(new Set());
  side = $state(false);
  drawn = $state(ROWS_A_PICTURE);
  limit = $state(ROWS_AT_FIRST);
  old = $state.raw<readonly (readonly Token[])[]>([]);
  new = $state.raw<readonly (readonly Token[])[]>([]);

  unfold(gap: number): void {
    this.unfolded = new Set([...this.unfolded, gap]);
  }

  hunk(at: number): HTMLElement | null {
    return this.root?.querySelector<HTMLElement>(`[data-hunk="${at}"]`) ?? null;
  }

  /** Where a line is commented on. */
  line({ side, number }: Pick<Place, "side" | "number">): HTMLElement | null {
    return this.root?.querySelector<HTMLElement>(`[data-line="${side}-${number}"]`) ?? null;
  }

  /** Draws so many rows, some in each picture; gives back how to stop. */
  draw(rows: number): () => void {
    let frame = 0;
    const more = (): void => {
      if (this.drawn >= Math.min(rows, this.limit)) return;
      this.drawn += ROWS_A_PICTURE;
      frame = requestAnimationFrame(more);
    };
    frame = requestAnimationFrame(more);
    return () => cancelAnimationFrame(frame);
  }

  /** Colours for both sides, when they have come; a file that cannot have any stays plain. */
  async colour({ path, whole }: Pick<Draft, "path" | "whole">, off: AbortSignal): Promise<void> {
    const name = languageOf(path);
    if (!name) return;
    const [language, { coloured }] = await Promise.all([loadLanguage(name), import("./colour.ts")]);
    const old = await coloured(whole.before.join(""), language, off);
    const fresh = await coloured(whole.after.join(""), language, off);
    if (off.aborted) return;
    this.old = old ?? [];
    this.new = fresh ?? [];
  }
}
