/**
 * The review's keys: between hunks, what becomes of one, comments, and sending.
 *
 * Heard before the page's own keys (views/keys.ts), which it leaves alone otherwise; off while somebody types. It owns
 * no decision: it asks the guard, and moves eye and hand.
 */
import { toasts } from "../state/toasts.svelte.ts";
import type { Draft } from "./draft.svelte.ts";
import type { Reading } from "./reading.svelte.ts";

export interface Review {
  readonly draft: Draft | null;
  readonly root: HTMLElement | undefined;
  readonly reading: Reading;
  readonly ready: () => boolean;
  /** Strongly: with Shift, as a high risk asks for. */
  readonly send: (strong: boolean) => void;
}

/** Keys of the page that would allow the whole proposal, against what was chosen here. */
const ALLOWS = new Set(["a", "A", "s", "r"]);
/** How long a `g` waits for its second stroke. */
const SECOND_MS = 1200;

export function reviewKeys(review: Review): (event: KeyboardEvent) => void {
  let g = -SECOND_MS;
  return (event) => {
    const second = event.timeStamp - g < SECOND_MS;
    g = event.key === "g" && !second ? event.timeStamp : -SECOND_MS;
    if (second || event.defaultPrevented || elsewhere(event.target)) return;
    const act = acts(review, event);
    if (!act) return;
    event.preventDefault();
    if (!event.repeat || event.key.startsWith("Arrow")) act();
  };
}

function acts(review: Review, event: KeyboardEvent): (() => void) | null {
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
    case "m":
      return guarded(() => comment(review));
    case "ArrowDown":
    case "ArrowUp":
      return lineAt(event.target) ? () => step(review, event.target as HTMLElement, event.key === "ArrowDown" ? 1 : -1) : null;
    default:
      return ALLOWS.has(event.key) && draft.touched ? () => toasts.say("You changed this proposal: send your review, or start over to allow it as it was proposed.") : null;
  }
}

function go({ draft, reading }: Review, to: number): void {
  if (!draft?.whole.hunks.length) return;
  reading.current = Math.max(0, Math.min(draft.whole.hunks.length - 1, to));
  reading.editing = null;
  const hunk = document.getElementById(`hunk-${reading.current}`);
  hunk?.focus({ preventScroll: true });
  hunk?.scrollIntoView({ block: "nearest" });
}

function edit({ draft, reading }: Review, what: number | "file"): void {
  if (draft && !draft.deletes && (what === "file" || draft.whole.hunks.length)) reading.editing = what;
}

/** On the line that has the focus, else on the first changed one of the current hunk. */
function comment({ draft, reading, root }: Review): void {
  const hunk = root?.querySelector(`#hunk-${reading.current}`);
  const button = lineAt(document.activeElement) ?? hunk?.querySelector<HTMLElement>(".row:has(.added, .removed) [id^=line-]") ?? root?.querySelector<HTMLElement>("[id^=line-]");
  if (draft && button) button.click();
}

/** From line to line; the hunk that is entered becomes the current one. */
function step({ reading, root }: Review, from: HTMLElement, by: number): void {
  const all = [...(root?.querySelectorAll<HTMLElement>("[id^=line-]") ?? [])];
  const to = all[all.indexOf(from) + by];
  to?.focus();
  const hunk = to?.closest("section[id^=hunk-]")?.id.slice("hunk-".length);
  if (hunk !== undefined) reading.current = Number(hunk);
}

function lineAt(target: EventTarget | null): HTMLElement | null {
  return target instanceof HTMLElement && target.id.startsWith("line-") ? target : null;
}

/** Somebody types, or something lies over the page. */
function elsewhere(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]")) return true;
  return target instanceof HTMLElement && (target.isContentEditable || target.closest("input, textarea, select, [role=menu]") !== null);
}

