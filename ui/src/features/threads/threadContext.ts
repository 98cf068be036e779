/**
 * Dependencies of the components of a thread.
 *
 * The page provides them from the daemon, the gallery from fixtures.
 */
import { createContext, type Snippet } from "svelte";

import type { TrackedCall } from "../../state/model.ts";
import type { CallData } from "./callPart.ts";

export interface ThreadContext {
  /** A picture as an address that may be drawn; it is fetched with the bearer, which no address can carry. */
  picture(sha: string): Promise<string>;
  login(agent: string, method: string): void;
  watch(terminal: string): void;
  /** Adding this to the daemon's time gives this page's. */
  readonly skew: number;
  /** A call of ours, as far as the page knows it. */
  call(id: string): TrackedCall | undefined;
  /** Cancels an activity, or its tracked `call`. */
  cancel(operation: string, activity: string, call: TrackedCall | undefined): Promise<unknown>;
  /** A call of ours, with everything a person can do about it. */
  readonly card: Snippet<[CallData]>;
}

export const [threadContext, setThreadContext] = createContext<ThreadContext>();
