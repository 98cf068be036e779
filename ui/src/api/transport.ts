/**
 * How the page reaches the daemon: `fetch` and WebSockets of the browser, or messages to an editor's extension
 * (editor/editorTransport.ts), which has the bearer and makes the requests.
 */

/** The part of a WebSocket that the page uses. */
export type LiveSocket = Pick<WebSocket, "binaryType" | "readyState" | "send" | "close" | "onopen" | "onmessage" | "onclose">;

export interface Transport {
  fetch(request: Request, signal: AbortSignal): Promise<Response>;
  /** A socket at a path of the daemon. */
  socket(path: string, bearer: string): LiveSocket;
  /** Where the daemon's own page is, for links that a person copies. */
  origin(): string;
}

const browser: Transport = {
  fetch: (request, signal) => fetch(request, { signal }),
  /** With the bearer as a subprotocol: browsers allow no other header on it. */
  socket(path, bearer) {
    const url = new URL(path, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return new WebSocket(url, ["handrail", `bearer.${bearer}`]);
  },
  origin: () => location.origin,
};

let current = browser;

export function transport(): Transport {
  return current;
}

/** Replaces the browser's transport, before the first request. */
export function setTransport(other: Transport): void {
  current = other;
}
