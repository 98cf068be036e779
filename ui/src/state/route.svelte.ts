/**
 * Where the page is: a view, and what is open beside it. Deep links `/c/CALL`, `/a/APPROVAL` and `/x/TERMINAL`.
 *
 * Owns the address bar and the history. It does not know calls or terminals, only their ids.
 */
export type View = "inbox" | "calls" | "terminals";

export interface Place {
  readonly view: View;
  readonly call: string | null;
  readonly approval: string | null;
  readonly terminal: string | null;
}

const NOTHING = { call: null, approval: null, terminal: null } as const;
const PATHS: Record<View, string> = { inbox: "/", calls: "/calls", terminals: "/terminals" };

class Route {
  place = $state.raw<Place>(read());

  constructor() {
    addEventListener("popstate", () => (this.place = read()));
  }

  go(view: View): void {
    this.set({ view, ...NOTHING }, "push");
  }

  /** Opens a call beside the view; from one call to the next the history does not grow. */
  open(call: string): void {
    if (this.place.call === call) return;
    const before = this.place.call ?? this.place.approval;
    const view = this.place.view === "terminals" ? "calls" : this.place.view;
    this.set({ view, ...NOTHING, call }, before ? "replace" : "push");
  }

  /** Opens a terminal, which has its own view. */
  watch(terminal: string): void {
    if (this.place.terminal === terminal) return;
    this.set({ view: "terminals", ...NOTHING, terminal }, this.place.terminal ? "replace" : "push");
  }

  /** What `/a/ID` was about has been found. */
  found(call: string): void {
    this.set({ ...this.place, ...NOTHING, call }, "replace");
  }

  close(): void {
    this.set({ ...this.place, ...NOTHING }, "replace");
  }

  private set(place: Place, how: "push" | "replace"): void {
    this.place = place;
    const url = place.call ? `/c/${place.call}` : place.terminal ? `/x/${place.terminal}` : PATHS[place.view];
    if (how === "push") history.pushState({ view: place.view }, "", url);
    else history.replaceState({ view: place.view }, "", url);
  }
}

function read(): Place {
  const [, kind, id] = location.pathname.split("/");
  const remembered = (history.state as { view?: View } | null)?.view;
  const view = kind === "calls" ? "calls" : kind === "terminals" || kind === "x" ? "terminals" : (remembered ?? "inbox");
  const of = (letter: string): string | null => (kind === letter && id ? id : null);
  return { view, call: of("c"), approval: of("a"), terminal: of("x") };
}

export const route = new Route();
