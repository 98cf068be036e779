/**
 * The guard against acting on what has only just appeared: nothing under it works for 700 ms.
 *
 * Owns the time; whoever acts asks `ready` first. It does not know keys, clicks or cards.
 */
export const GUARD_MS = 700;

export class InputGuard {
  ready = $state(false);
  /** Grows with every new start, so that the fill on the buttons starts anew. */
  round = $state(0);
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Starts over: something new came under the person's hand. */
  arm(): void {
    clearTimeout(this.timer);
    this.ready = false;
    this.round++;
    this.timer = setTimeout(() => (this.ready = true), GUARD_MS);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.ready = false;
  }
}
