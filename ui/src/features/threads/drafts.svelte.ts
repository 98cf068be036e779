/**
 * Prompt drafts and reading positions per thread.
 *
 * Both survive switching threads. Text also survives a reload of this tab; images do not.
 */
import { SvelteMap } from "svelte/reactivity";

import type { Picture } from "../../api/types.ts";
import type { WhileWorking } from "./threadText.ts";

export interface PromptDraft {
  readonly text: string;
  readonly pictures: readonly Picture[];
  /** The recipient, if it is not the thread's agent. */
  readonly agent: string | null;
}

/** A message, its position in the thread, and its offset from the top of the viewport; null is the end. */
export type ReadingPosition = { readonly message: string; readonly n: number; readonly offset: number } | null;

const EMPTY: PromptDraft = { text: "", pictures: [], agent: null };
const KEY = "handrail.draft.";

class Drafts {
  private readonly known = new SvelteMap<string, PromptDraft>();
  private readonly readings = new Map<string, ReadingPosition>();
  /** What happens to a prompt that is sent while the agent works, as the person chose last. */
  whileWorking = $state<WhileWorking>("steer");

  of(thread: string): PromptDraft {
    return this.known.get(thread) ?? { ...EMPTY, text: stored(thread) };
  }

  change(thread: string, facts: Partial<PromptDraft>): void {
    const draft = { ...this.of(thread), ...facts };
    this.known.set(thread, draft);
    keep(thread, draft.text);
  }

  /** Adds a passage to the text, in lines of its own. */
  append(thread: string, passage: string): void {
    const { text } = this.of(thread);
    this.change(thread, { text: `${text && !text.endsWith("\n") ? `${text}\n` : text}${passage}\n` });
  }

  clear(thread: string): void {
    this.change(thread, { text: "", pictures: [] });
  }

  reading(thread: string): ReadingPosition {
    return this.readings.get(thread) ?? null;
  }

  read(thread: string, place: ReadingPosition): void {
    this.readings.set(thread, place);
  }
}

function stored(thread: string): string {
  try {
    return sessionStorage.getItem(KEY + thread) ?? "";
  } catch {
    return ""; // storage may be disabled
  }
}

function keep(thread: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(KEY + thread, text);
    else sessionStorage.removeItem(KEY + thread);
  } catch {
    // kept in memory only
  }
}

export const drafts = new Drafts();
