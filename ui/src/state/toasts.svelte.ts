/** Short messages that disappear after a while. Rendered by components/Toasts.svelte. */

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "plain" | "red";
  /** A button in the toast. */
  readonly action?: { readonly word: string; readonly run: () => void };
}

const STAYS_MS = 6000;
/** Duration of a toast with a button. */
const STAYS_LONGER_MS = 12_000;
/** Older toasts are dropped beyond this number. */
const MOST = 3;

class Toasts {
  list = $state.raw<readonly Toast[]>([]);
  private last = 0;

  show(text: string, tone: Toast["tone"] = "plain"): void {
    this.add({ text, tone }, STAYS_MS);
  }

  /** Shows a toast with a button. */
  offer(text: string, word: string, run: () => void): void {
    this.add({ text, tone: "plain", action: { word, run } }, STAYS_LONGER_MS);
  }

  dismiss(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }

  private add(remark: Omit<Toast, "id">, stays: number): void {
    const toast = { id: ++this.last, ...remark };
    this.list = [...this.list.filter((other) => other.text !== remark.text), toast].slice(-MOST);
    setTimeout(() => this.dismiss(toast.id), stays);
  }
}

export const toasts = new Toasts();
