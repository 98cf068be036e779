/** One clock for all timers: it ticks once a second, so that they change together. */

const TICK_MS = 1000;

class Clock {
  /** Milliseconds on the page's monotonic clock. */
  now = $state(performance.now());

  constructor() {
    setInterval(() => this.tick(), TICK_MS);
    document.addEventListener("visibilitychange", () => this.tick());
  }

  tick(): void {
    this.now = performance.now();
  }
}

export const clock = new Clock();
