/** The clipboard, and files the browser saves. */
import { toasts } from "../state/toasts.svelte.ts";

export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toasts.show("Copied.");
  } catch {
    toasts.show("The browser does not let this page copy. Select the text and copy it by hand.", "red");
  }
}

/** Starts a download in the browser. */
export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
