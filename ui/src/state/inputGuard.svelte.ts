/**
 * Blocks input on a card that has just appeared, for 700 ms, so that a key meant for something else never answers it.
 *
 * Callers check `ready` before they act.
 */
export const GUARD_MS = 700;

export class InputGuard {
  private open = $state(false);
  /** No answer would arrive: the daemon is away. */
  offline = $state(false);
  /** Incremented with every start, to restart the fill animation of the buttons. */
  round = $state(0);
  private timer: ReturnType<typeof setTimeout> | undefined;

  get ready(): boolean {
    return this.open && !this.offline;
  }

  /** Restarts the delay. */
  arm(): void {
    clearTimeout(this.timer);
    this.open = false;
    this.round++;
    this.timer = setTimeout(() => (this.open = true), GUARD_MS);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.open = false;
  }
}
