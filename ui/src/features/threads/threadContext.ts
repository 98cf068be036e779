/**
 * Dependencies of the components of a thread.
 *
 * The page provides them from the daemon, the gallery from fixtures.
 */
import { createContext, type Snippet } from "svelte";

import type { Provider, UndoView } from "../../api/types.ts";
import type { TrackedCall } from "../../state/model.ts";
import type { CallData } from "./callPart.ts";

export interface ThreadContext {
  /** An image as a data URL; it is fetched with the bearer, which a URL cannot carry. */
  picture(sha: string): Promise<string>;
  login(agent: string, method: string): void;
  /** Stores an API key of our own agent. */
  storeKey?(provider: Provider, key: string): Promise<void>;
  watch(terminal: string): void;
  /** Daemon time plus this is page time. */
  readonly skew: number;
  /** A call of ours, as far as the page knows it. */
  call(id: string): TrackedCall | undefined;
  /** What undoing an operation would change. */
  changes(operation: string): Promise<UndoView>;
  /** Shows what undoing an operation would change, and offers it. */
  undo(operation: string): void;
  /** Grows with each undo. */
  readonly restored: number;
  /** Cancels an activity, or its tracked `call`. */
  cancel(operation: string, activity: string, call: TrackedCall | undefined): Promise<unknown>;
  /** The card of a tracked call, with its actions. */
  readonly card: Snippet<[CallData]>;
}

export const [threadContext, setThreadContext] = createContext<ThreadContext>();
