/**
 * Shortcuts of the review: move between hunks, decide one, comment, send.
 *
 * Handled before the page's shortcuts (app/pageKeys.ts), and off while a text field has the focus. Decisions still go
 * through the guard.
 */
import type { ReviewDraft } from "./reviewDraft.svelte.ts";
import type { ReviewView } from "./reviewView.svelte.ts";

export interface ReviewKeysContext {
  readonly draft: ReviewDraft | null;
  readonly reading: ReviewView;
  readonly ready: () => boolean;
  /** `strong`: with Shift, as high risk requires. */
  readonly send: (strong: boolean) => void;
}

/** For the list of shortcuts. */
export const REVIEW_KEYS = [
  { key: "[ ]", does: "review: previous, next hunk" },
  { key: "y", does: "review: keep the hunk" },
  { key: "n", does: "review: reject the hunk" },
  { key: "h", does: "review: split the hunk into its changes" },
  { key: "x", does: "review: keep or reject the focused line" },
  { key: "Shift+E", does: "review: edit the whole file (e: the hunk)" },
  { key: "m", does: "review: comment on the line; ↑ ↓ move between lines" },
  { key: "Ctrl+Enter", does: "review: send it (with Shift for high risk); ⌘ on a Mac" },
] as const;

export function reviewKeys(review: ReviewKeysContext): (event: KeyboardEvent) => void {
  return (event) => {
    const act = event.defaultPrevented || elsewhere(review.reading.root, event.target) ? null : acts(review, event);
    if (!act) return;
    event.preventDefault();
    if (!event.repeat || event.key.startsWith("Arrow")) act();
  };
}

function acts(review: ReviewKeysContext, event: KeyboardEvent): (() => void) | null {
  const { draft, reading } = review;
  if (!draft) return null;
  const guarded = (act: () => void) => () => review.ready() && act();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return guarded(() => review.send(event.shiftKey));
  if ((event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph")) return null;
  const at = reading.current;
  switch (event.key) {
    case "[":
    case "]":
      return () => go(review, at + (event.key === "]" ? 1 : -1));
    case "y":
      return guarded(() => draft.choose(at, "keep"));
    case "n":
      return guarded(() => draft.choose(at, "reject"));
    case "e":
      return guarded(() => edit(review, at));
    case "E":
      return guarded(() => edit(review, "file"));
    case "h":
      return () => reading.divide(draft, at);
    case "x":
      return picked(event.target) ? guarded(() => pick(review, event.target)) : null;
    case "m":
      return guarded(() => comment(review));
    case "ArrowDown":
    case "ArrowUp":
      return lineAt(event.target) ? () => step(review, event.target as HTMLElement, event.key === "ArrowDown" ? 1 : -1) : null;
    default:
      return null;
  }
}

function go({ draft, reading }: ReviewKeysContext, to: number): void {
  if (!draft?.whole.hunks.length) return;
  reading.current = Math.max(0, Math.min(draft.whole.hunks.length - 1, to));
  reading.editing = null;
  const hunk = reading.hunk(reading.current);
  hunk?.focus({ preventScroll: true });
  hunk?.scrollIntoView({ block: "nearest" });
}

function edit({ draft, reading }: ReviewKeysContext, what: number | "file"): void {
  if (draft && !draft.deletes && (what === "file" || draft.whole.hunks.length)) reading.editing = what;
}

/** The button that keeps or rejects the focused line. */
function picked(target: EventTarget | null): HTMLElement | null {
  return lineAt(target)?.closest(".row")?.querySelector<HTMLElement>(`[data-pick="${lineAt(target)?.dataset.line}"]`) ?? null;
}

function pick({ reading }: ReviewKeysContext, target: EventTarget | null): void {
  const hunk = lineAt(target)?.closest<HTMLElement>("[data-hunk]")?.dataset.hunk;
  if (hunk !== undefined) reading.current = Number(hunk);
  picked(target)?.click();
}

/** Comments on the focused line, else on the first changed one of the current hunk. */
function comment({ draft, reading }: ReviewKeysContext): void {
  const hunk = reading.hunk(reading.current);
  const button = lineAt(document.activeElement) ?? hunk?.querySelector<HTMLElement>(".row:has(.added, .removed) [data-line]") ?? reading.root?.querySelector<HTMLElement>("[data-line]");
  if (draft && button) button.click();
}

/** Moves between lines, and updates the current hunk. */
function step({ reading }: ReviewKeysContext, from: HTMLElement, by: number): void {
  const all = [...(reading.root?.querySelectorAll<HTMLElement>("[data-line]") ?? [])];
  const to = all[all.indexOf(from) + by];
  to?.focus();
  const hunk = to?.closest<HTMLElement>("[data-hunk]")?.dataset.hunk;
  if (hunk !== undefined) reading.current = Number(hunk);
}

function lineAt(target: EventTarget | null): HTMLElement | null {
  return target instanceof HTMLElement && target.dataset.line !== undefined ? target : null;
}

/** True while a text field has the focus, a dialog is open, or the event belongs to another review. */
function elsewhere(root: HTMLElement | undefined, target: EventTarget | null): boolean {
  const meant = (target instanceof Element ? target.closest("[data-review]") : null) ?? document.querySelector("[data-review]");
  if (meant !== root || document.querySelector("dialog[open]")) return true;
  return target instanceof HTMLElement && (target.isContentEditable || target.closest("input, textarea, select, [role=menu]") !== null);
}

