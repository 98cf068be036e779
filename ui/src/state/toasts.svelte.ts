/** Short remarks that go away by themselves. It does not know where they are drawn (parts/Toasts.svelte). */

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "plain" | "red";
}

const STAYS_MS = 6000;
/** More than this at once is a wall, not a remark. */
const MOST = 3;

class Toasts {
  list = $state.raw<readonly Toast[]>([]);
  private last = 0;

  say(text: string, tone: Toast["tone"] = "plain"): void {
    const toast = { id: ++this.last, text, tone };
    this.list = [...this.list.filter((other) => other.text !== text), toast].slice(-MOST);
    setTimeout(() => this.dismiss(toast.id), STAYS_MS);
  }

  dismiss(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
