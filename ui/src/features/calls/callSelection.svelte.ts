/** The selected rows of the table of calls. */
import { SvelteSet } from "svelte/reactivity";

/** As many ids as one request takes. */
const MOST = 1000;

export class CallSelection {
  private readonly chosen = new SvelteSet<string>();
  private last: string | null = null;

  get ids(): readonly string[] {
    return [...this.chosen];
  }

  has(id: string): boolean {
    return this.chosen.has(id);
  }

  toggle(id: string): void {
    this.last = id;
    if (!this.chosen.delete(id) && this.chosen.size < MOST) this.chosen.add(id);
  }

  /** Selects everything between the last selected row and this one. */
  extend(id: string, order: readonly string[]): void {
    const [from, to] = [order.indexOf(this.last ?? id), order.indexOf(id)];
    for (const one of order.slice(Math.max(0, Math.min(from, to)), Math.max(from, to) + 1)) if (this.chosen.size < MOST) this.chosen.add(one);
    this.last = id;
  }

  clear(): void {
    this.chosen.clear();
    this.last = null;
  }
}
