/**
 * The live socket: entries after a sequence number, for as long as it lasts.
 *
 * Owns one connection from opening to closing. It does not know when to try again (state/store.svelte.ts).
 */
import type { Api } from "./client.ts";
import type { LiveEntries } from "./types.ts";

export interface EventHandler {
  opened(): void;
  /** False ends the connection. */
  frame(frame: LiveEntries, received: number): boolean;
}

/** Follows until the socket closes or `stop` is aborted; says whether it was ever open. */
export function followEvents(api: Api, after: number, follower: EventHandler, stop: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = api.socket(`/api/live?after=${after}`);
    let opened = false;
    const close = () => socket.close();
    stop.addEventListener("abort", close, { once: true });
    socket.onopen = () => {
      opened = true;
      follower.opened();
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      if (!follower.frame(JSON.parse(data) as LiveEntries, performance.now())) close();
    };
    socket.onclose = () => {
      stop.removeEventListener("abort", close);
      resolve(opened);
    };
  });
}
