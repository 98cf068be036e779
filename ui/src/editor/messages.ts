/** Messages between the page in an editor's webview and the extension. Both sides import this file. */

/** What the extension knows about the daemon. */
export type Standing =
  | { readonly kind: "connecting" }
  | { readonly kind: "away"; readonly why: string; readonly canStart: boolean }
  | {
      readonly kind: "live";
      /** Another one for each bearer: what the page loaded with the last one may be incomplete. */
      readonly epoch: number;
      readonly url: string;
      readonly approves: boolean;
      /** Why the editor may only watch. */
      readonly why: string;
      /** To be compared with the one in the pairing question. */
      readonly number: number | null;
      /** Which of the daemon and the extension to update; empty if they come from the same release. */
      readonly update: string;
    };

export type ToExtension =
  | { readonly type: "ready" }
  | { readonly type: "start" }
  /** The name of the view that the page shows now. */
  | { readonly type: "view"; readonly name: string }
  | { readonly type: "request"; readonly id: number; readonly method: string; readonly path: string; readonly body: string | null; readonly timeout: number }
  | { readonly type: "open"; readonly id: number; readonly path: string }
  | { readonly type: "send"; readonly id: number; readonly data: string | Uint8Array<ArrayBuffer> }
  | { readonly type: "close"; readonly id: number }
  /** What of the diff editor and the terminal panel a person asked for on the page. */
  | { readonly type: "reveal"; readonly what: "diff" | "terminal"; readonly id: string };

export type ToPage =
  | { readonly type: "standing"; readonly standing: Standing }
  /** Without a status: there was no response. */
  | { readonly type: "response"; readonly id: number; readonly status: number; readonly contentType: string; readonly body: Uint8Array<ArrayBuffer> }
  | { readonly type: "opened"; readonly id: number }
  | { readonly type: "message"; readonly id: number; readonly data: string | Uint8Array<ArrayBuffer> }
  | { readonly type: "closed"; readonly id: number; readonly code: number }
  /** Open this path of the page, such as `/c/c3f`. */
  | { readonly type: "show"; readonly path: string }
  /** Add this to the message that is being written: to the thread that is open, or to a new one. */
  | { readonly type: "attach"; readonly text: string };
