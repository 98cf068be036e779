/**
 * The view state of a review: current hunk, expanded gaps, open editors, highlighting.
 *
 * The decisions are in reviewDraft.svelte.ts.
 */
import { flushSync } from "svelte";

import type { Token } from "../../lib/codePieces.ts";
import { highlightTexts } from "../../lib/languages.ts";
import { lineKey, type LinePosition, type ReviewDraft } from "./reviewDraft.svelte.ts";

/** Rows rendered per frame: a generated file must not block the page. */
const ROWS_A_PICTURE = 150;
/** How long a long file waits for highlighting before the rest is rendered. */
const PATIENCE_MS = 2000;
/** Longer views are not rendered again for late highlighting. */
const DRAWN_ONCE = 1000;
/** Longer files are cut until expanded. */
export const INITIAL_ROWS = 6000;

export class ReviewView {
  /** The root element of the review. */
  root: HTMLElement | undefined;
  current = $state(0);
  /** A hunk, or the whole file. */
  editing = $state<number | "file" | null>(null);
  composing = $state.raw<LinePosition | null>(null);
  unfolded = $state.raw<ReadonlySet<number>>(new Set());
  side = $state(false);
  drawn = $state(ROWS_A_PICTURE);
  limit = $state(INITIAL_ROWS);
  /** Highlighting has arrived or failed: rows rendered from now on are final. */
  settled = $state(false);
  old = $state.raw<readonly (readonly Token[])[]>([]);
  new = $state.raw<readonly (readonly Token[])[]>([]);

  isComposing(place: LinePosition): boolean {
    return this.composing !== null && lineKey(this.composing) === lineKey(place);
  }

  unfold(gap: number): void {
    this.unfolded = new Set([...this.unfolded, gap]);
  }

  unfoldAll(hunks: number): void {
    this.unfolded = new Set(Array.from({ length: hunks + 1 }, (_, at) => at));
  }

  hunk(at: number): HTMLElement | null {
    return this.root?.querySelector<HTMLElement>(`[data-hunk="${at}"]`) ?? null;
  }

  /** The element of a commentable line. */
  line(place: Pick<LinePosition, "side" | "number">): HTMLElement | null {
    return this.root?.querySelector<HTMLElement>(`[data-line="${lineKey(place)}"]`) ?? null;
  }

  /** Switches between unified and side by side; rows are rendered in batches again. */
  turn(side: boolean): void {
    if (side === this.side) return;
    this.side = side;
    this.drawn = ROWS_A_PICTURE;
  }

  /** Splits a hunk; the focus moves to its first part. */
  divide(draft: Pick<ReviewDraft, "divide">, at: number): void {
    flushSync(() => {
      draft.divide(at);
      this.current = at;
      this.unfolded = new Set(); // the gaps have other numbers now
    });
    this.hunk(at)?.focus({ preventScroll: true });
  }

  /** Renders rows in batches per frame; returns the stop function. */
  draw(rows: number): () => void {
    let frame = 0;
    const more = (): void => {
      if (this.drawn > rows) return;
      this.drawn += ROWS_A_PICTURE;
      frame = requestAnimationFrame(more);
    };
    frame = requestAnimationFrame(more);
    return () => cancelAnimationFrame(frame);
  }

  /** Highlights both sides; a file without a known language stays plain. */
  async colour({ path, whole }: Pick<ReviewDraft, "path" | "whole">, off: AbortSignal): Promise<void> {
    this.new = []; // tokens of another text do not fit
    this.settled = false;
    this.drawn = ROWS_A_PICTURE;
    const enough = setTimeout(() => (this.settled = true), PATIENCE_MS);
    off.addEventListener("abort", () => clearTimeout(enough));
    const [old, fresh] = await highlightTexts(path, [whole.before.join(""), whole.after.join("")], off).catch(() => []); // highlighting is optional
    if (off.aborted || (this.settled && this.drawn > DRAWN_ONCE)) return;
    this.old = old ?? [];
    this.new = fresh ?? [];
    this.settled = true;
  }
}
