/** Typical durations of running calls, fetched once for each call that runs longer than a moment. */
import { SvelteMap } from "svelte/reactivity";

import type { Api } from "../../api/client.ts";
import type { Usual } from "../../api/types.ts";
import type { TrackedCall } from "../../state/model.ts";

/** Calls that end sooner are not looked up. */
const MOMENT_MS = 1500;
/** Cache size; when it is exceeded, the cache is cleared and running calls are looked up again. */
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

  /** Looks up this call after a delay, unless that was done before. */
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
