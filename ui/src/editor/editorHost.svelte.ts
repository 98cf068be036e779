/**
 * The editor around the page: its messages, its theme, and what the extension knows about the daemon.
 */
import { tick } from "svelte";

import { setTransport } from "../api/transport.ts";
import { drafts } from "../features/threads/drafts.svelte.ts";
import { route } from "../state/route.svelte.ts";
import { settings } from "../state/settings.svelte.ts";
import { EditorTransport } from "./editorTransport.ts";
import type { Standing, ToExtension, ToPage } from "./messages.ts";

interface EditorApi {
  postMessage(message: ToExtension): void;
}

declare function acquireVsCodeApi(): EditorApi;

class EditorHost {
  standing = $state.raw<Standing>({ kind: "connecting" });
  private readonly api = acquireVsCodeApi();
  private readonly transport = new EditorTransport(
    (message) => this.api.postMessage(message),
    () => (this.standing.kind === "live" ? this.standing.url : ""),
  );

  start(): void {
    route.keepsUrl = false;
    setTransport(this.transport);
    addEventListener("message", ({ data }: MessageEvent<ToPage>) => this.hear(data));
    document.addEventListener("click", keepOwnLink);
    this.followTheme();
    this.api.postMessage({ type: "ready" });
  }

  post(message: ToExtension): void {
    this.api.postMessage(message);
  }

  private hear(message: ToPage): void {
    if (message.type === "standing") this.standing = message.standing;
    else if (message.type === "show") route.open(message.path);
    else if (message.type === "attach") void this.attach(message.text);
    else this.transport.hear(message);
  }

  private async attach(text: string): Promise<void> {
    const thread = route.place.thread ?? "new";
    if (route.place.thread === null) route.openThread(thread);
    drafts.append(thread, text);
    await tick();
    document.querySelector<HTMLTextAreaElement>("[data-composer]")?.focus();
  }

  /** The editor names its theme in the class of the body. */
  private followTheme(): void {
    const paint = (): void => settings.follow(/vscode-(light|high-contrast-light)/.test(document.body.className) ? "light" : "dark");
    new MutationObserver(paint).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    paint();
  }
}

/**
 * Ends a click on a link within the page here, after the page's own listeners. VS Code's listener on the window opens every link
 * that is clicked in a webview, whether the page has handled it or not: in a browser tab of the editor, with no page at its address.
 */
function keepOwnLink(event: MouseEvent): void {
  if (!(event.target instanceof Element) || !event.target.closest('a[href^="/"]')) return;
  event.preventDefault();
  event.stopPropagation();
}

export const editorHost = new EditorHost();
