/**
 * Where the page is: a view, and what is open beside it. Deep links `/c/CALL` and `/a/APPROVAL`.
 *
 * Owns the address bar and the history. It does not know calls, only their ids.
 */
export type View = "inbox" | "calls";

export interface Place {
  readonly view: View;
  readonly call: string | null;
  readonly approval: string | null;
}

class Route {
  place = $state.raw<Place>(read());

  constructor() {
    addEventListener("popstate", () => (this.place = read()));
  }

  go(view: View): void {
    this.set({ view, call: null, approval: null }, "push");
  }

  /** Opens a call beside the view; from one call to the next the history does not grow. */
  open(call: string): void {
    if (this.place.call === call) return;
    const before = this.place.call ?? this.place.approval;
    this.set({ ...this.place, call, approval: null }, before ? "replace" : "push");
  }

  /** What `/a/ID` was about has been found. */
  found(call: string): void {
    this.set({ ...this.place, call, approval: null }, "replace");
  }

  close(): void {
    this.set({ ...this.place, call: null, approval: null }, "replace");
  }

  private set(place: Place, how: "push" | "replace"): void {
    this.place = place;
    const url = place.call ? `/c/${place.call}` : place.view === "calls" ? "/calls" : "/";
    if (how === "push") history.pushState({ view: place.view }, "", url);
    else history.replaceState({ view: place.view }, "", url);
  }
}

function read(): Place {
  const [, kind, id] = location.pathname.split("/");
  const remembered = (history.state as { view?: View } | null)?.view;
  const view = kind === "calls" ? "calls" : (remembered ?? "inbox");
  return { view, call: kind === "c" && id ? id : null, approval: kind === "a" && id ? id : null };
}

export const route = new Route();
