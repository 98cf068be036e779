/**
 * The live socket: journal entries after a sequence number, over one connection.
 *
 * Tells the daemon when the page is hidden, because then it sends push messages. Reconnecting is the caller's job (state/store.svelte.ts).
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
    const tellVisibility = () => opened && socket.readyState === WebSocket.OPEN && socket.send(document.visibilityState === "hidden" ? "hidden" : "visible");
    document.addEventListener("visibilitychange", tellVisibility);
    socket.onopen = () => {
      opened = true;
      if (document.visibilityState === "hidden") tellVisibility();
      follower.opened();
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      if (!follower.frame(JSON.parse(data) as LiveEntries, performance.now())) close();
    };
    socket.onclose = () => {
      stop.removeEventListener("abort", close);
      document.removeEventListener("visibilitychange", tellVisibility);
      resolve(opened);
    };
  });
}
