/**
 * How long calls like those that run usually take: asked for once of each that runs longer than a moment.
 *
 * Owns what was asked already. It does not know rows or clocks.
 */
import { SvelteMap } from "svelte/reactivity";

import type { Api } from "../../api/client.ts";
import type { Usual } from "../../api/types.ts";
import type { TrackedCall } from "../../state/model.ts";

/** Nobody reads what is over by then. */
const MOMENT_MS = 1500;
/** More than this is forgotten, all of it: what still runs is asked for again. */
const MOST = 500;

export class TypicalDurations {
  private readonly known = new SvelteMap<string, Usual | null>();
  private readonly asked = new Set<string>();
  private readonly api: Pick<Api, "call">;

  constructor(api: Pick<Api, "call">) {
    this.api = api;
  }

  of(call: Pick<TrackedCall, "id" | "usual">): Usual | null {
    return call.usual ?? this.known.get(call.id) ?? null;
  }

  /** Asks for this call's, in a moment, unless that was done. */
  want(call: string, still: () => boolean): void {
    if (this.asked.has(call)) return;
    if (this.asked.size >= MOST) this.forget();
    this.asked.add(call);
    setTimeout(() => {
      if (still()) void this.api.call(call).then(({ usual }) => this.known.set(call, usual ?? null), () => this.asked.delete(call));
      else this.asked.delete(call);
    }, MOMENT_MS);
  }

  private forget(): void {
    this.asked.clear();
    this.known.clear();
  }
}
