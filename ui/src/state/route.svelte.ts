/**
 * The page's route: a view, and the item open beside it. Deep links `/c/CALL`, `/a/APPROVAL`, `/x/TERMINAL`,
 * `/t/THREAD#MESSAGE` and `/rules#RULE`.
 *
 * Owns the URL and the history.
 */
export type View = "inbox" | "calls" | "threads" | "terminals" | "rules" | "servers" | "settings";

export interface RoutePlace {
  readonly view: View;
  readonly call: string | null;
  readonly approval: string | null;
  readonly terminal: string | null;
  /** A thread id, or `new` for an unsent one. */
  readonly thread: string | null;
  /** The message to reveal. */
  readonly message: string | null;
  /** The rule to reveal. */
  readonly rule: string | null;
}

const NOTHING = { call: null, approval: null, terminal: null, thread: null, message: null, rule: null } as const;
const PATHS: Record<View, string> = { inbox: "/", calls: "/calls", threads: "/threads", terminals: "/terminals", rules: "/rules", servers: "/servers", settings: "/settings" };

export const VIEW_NAMES: Readonly<Record<View, string>> = { inbox: "Inbox", calls: "Calls", threads: "Threads", terminals: "Terminals", rules: "Rules", servers: "Servers", settings: "Settings" };

const VIEWS: Record<string, View> = { calls: "calls", rules: "rules", servers: "servers", settings: "settings", terminals: "terminals", x: "terminals", threads: "threads", t: "threads" };

/** Views with a list of their own kind: a query for one of them says nothing about another. All others share one query. */
const APART: readonly View[] = ["rules", "servers", "settings"];

class Route {
  place = $state.raw<RoutePlace>(placeFromUrl());
  /** The text of the search field; in the URL as `q`. */
  query = $state(parameter("q"));
  /** Calls are drawn as a waterfall; in the URL as `as`. */
  waterfall = $state(parameter("as") === "waterfall");
  /** False where the page has no URL of its own, as in an editor. */
  keepsUrl = true;

  constructor() {
    addEventListener("popstate", () => {
      this.place = placeFromUrl();
      this.query = parameter("q");
      this.waterfall = parameter("as") === "waterfall";
    });
  }

  go(view: View, query?: string): void {
    this.set({ view, ...NOTHING }, "push", query);
  }

  /** Opens a call beside the view; switching between calls replaces the history entry. */
  openCall(call: string): void {
    if (this.place.call === call) return;
    const before = this.place.call ?? this.place.approval;
    const view = this.place.view === "inbox" ? "inbox" : "calls";
    this.set({ view, ...NOTHING, call }, before ? "replace" : "push");
  }

  /** Opens a terminal, which has its own view. */
  openTerminal(terminal: string): void {
    if (this.place.terminal === terminal) return;
    this.set({ view: "terminals", ...NOTHING, terminal }, this.place.terminal ? "replace" : "push");
  }

  /** Opens a thread, optionally at a message. */
  openThread(thread: string, message: string | null = null): void {
    if (this.place.thread === thread && this.place.message === message) return;
    this.set({ view: "threads", ...NOTHING, thread, message }, this.place.thread ? "replace" : "push");
  }

  /** Opens the rules at one rule. */
  openRule(rule: string): void {
    this.set({ view: "rules", ...NOTHING, rule }, "push");
  }

  /** Replaces `/a/ID` by the URL of its call. */
  replaceWithCall(call: string): void {
    this.set({ ...this.place, ...NOTHING, call }, "replace");
  }

  /** Opens a path of this page, as in a link. */
  open(path: string): void {
    const [, kind = "", id = null] = path.split("/");
    const of = (letter: string): string | null => (kind === letter ? id : null);
    this.set({ ...NOTHING, view: VIEWS[kind] ?? "inbox", call: of("c"), approval: of("a"), terminal: of("x"), thread: of("t") }, "push");
  }

  /** Changes the query, without a new history entry: each key would make one. */
  search(query: string): void {
    this.query = query;
    this.set(this.place, "replace");
  }

  drawWaterfall(on: boolean): void {
    this.waterfall = on;
    this.set(this.place, "replace");
  }

  close(): void {
    this.set({ ...this.place, ...NOTHING }, "replace");
  }

  private url(place: RoutePlace): string {
    const [path = "/", anchor] = placeToUrl(place).split("#");
    const query = place.view === "inbox" ? "" : this.query; // nothing that needs the person may be hidden there
    const given = new URLSearchParams({ ...(query ? { q: query } : {}), ...(this.waterfall && place.view === "calls" ? { as: "waterfall" } : {}) });
    return `${path}${given.size ? `?${given.toString()}` : ""}${anchor ? `#${anchor}` : ""}`;
  }

  private set(place: RoutePlace, how: "push" | "replace", query?: string): void {
    const apart = place.view !== this.place.view && (APART.includes(place.view) || APART.includes(this.place.view));
    this.query = query ?? (apart ? "" : this.query);
    this.place = place;
    if (!this.keepsUrl) return;
    const url = this.url(place);
    if (how === "push") history.pushState({ view: place.view }, "", url);
    else history.replaceState({ view: place.view }, "", url);
  }
}

function placeToUrl({ view, call, terminal, thread, message, rule }: RoutePlace): string {
  if (call) return `/c/${call}`;
  if (terminal) return `/x/${terminal}`;
  if (thread) return `/t/${thread}${message ? `#${message}` : ""}`;
  return rule ? `${PATHS[view]}#${encodeURIComponent(rule)}` : PATHS[view];
}

function placeFromUrl(): RoutePlace {
  const [, kind, id] = location.pathname.split("/");
  const remembered = (history.state as { view?: View } | null)?.view;
  const view = VIEWS[kind ?? ""] ?? remembered ?? "inbox";
  const of = (letter: string): string | null => (kind === letter && id ? id : null);
  return { view, call: of("c"), approval: of("a"), terminal: of("x"), thread: of("t"), message: of("t") ? anchor() : null, rule: view === "rules" ? anchor() : null };
}

function parameter(name: string): string {
  return new URLSearchParams(location.search).get(name) ?? "";
}

/** The fragment of the URL; a sign-in code is ignored. */
function anchor(): string | null {
  try {
    const name = decodeURIComponent(location.hash.slice(1));
    return name && !name.startsWith("code=") ? name : null;
  } catch {
    return null;
  }
}

export const route = new Route();
