/**
 * The live socket: journal entries after a sequence number, over one connection.
 *
 * Reconnecting is the caller's job (state/store.svelte.ts).
 */
import type { Api } from "./client.ts";
import type { LiveEntries } from "./types.ts";

export interface EventHandler {
  opened(): void;
  /** False ends the connection. */
  frame(frame: LiveEntries, received: number): boolean;
}

/** Follows until the socket closes or `stop` is aborted; resolves to whether it ever opened. */
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
