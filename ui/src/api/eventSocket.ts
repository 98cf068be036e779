/**
 * The live socket: journal entries after a sequence number, over one connection.
 *
 * Tells the daemon when the page is hidden, because then it sends push messages. A daemon that hangs keeps the connection open, so
 * heartbeats show that it answers. Reconnecting is the caller's job (state/store.svelte.ts).
 */
import type { Api } from "./client.ts";
import type { LiveEntries } from "./types.ts";

export interface EventHandler {
  opened(): void;
  /** False ends the connection. */
  frame(frame: LiveEntries, received: number): boolean;
}

/** How a connection ended. */
export interface Ending {
  opened: boolean;
  /** When the last frame came, if the daemon then fell silent. */
  silentSince: number | null;
}

/** Without a frame for this long, the daemon hangs. It sends a heartbeat every 3 s. */
const SILENCE_MS = 10_000;

/** Follows until the socket closes, the daemon falls silent or `stop` is aborted. */
export function followEvents(api: Api, after: number, follower: EventHandler, stop: AbortSignal): Promise<Ending> {
  return new Promise((resolve) => {
    const socket = api.socket(`/api/live?after=${after}`);
    let opened = false;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const close = () => socket.close();
    const end = (silentSince: number | null) => {
      clearTimeout(silence);
      socket.onopen = socket.onmessage = socket.onclose = null;
      stop.removeEventListener("abort", close);
      document.removeEventListener("visibilitychange", tellVisibility);
      resolve({ opened, silentSince });
    };
    /** From the first heartbeat on: a daemon of an older release sends none. */
    const awaitNext = (frame: LiveEntries, received: number) => {
      if (silence === undefined && !isHeartbeat(frame)) return;
      clearTimeout(silence);
      silence = setTimeout(() => {
        end(received);
        close();
      }, SILENCE_MS);
    };
    stop.addEventListener("abort", close, { once: true });
    const tellVisibility = () => opened && socket.readyState === WebSocket.OPEN && socket.send(document.visibilityState === "hidden" ? "hidden" : "visible");
    document.addEventListener("visibilitychange", tellVisibility);
    socket.onopen = () => {
      opened = true;
      if (document.visibilityState === "hidden") tellVisibility();
      follower.opened();
    };
    socket.onmessage = ({ data }: MessageEvent<string>) => {
      const frame = JSON.parse(data) as LiveEntries;
      const received = performance.now();
      awaitNext(frame, received);
      if (!isHeartbeat(frame) && !follower.frame(frame, received)) close();
    };
    socket.onclose = () => end(null);
  });
}

function isHeartbeat({ entries, clients, editors }: LiveEntries): boolean {
  return entries.length === 0 && !clients && !editors;
}
