/** The keys that the page handles while the terminal has the focus; pure. */

const MAC = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

export type ReservedKey = "leave" | "find" | "copy";

/** The action of a key event, or null. Paste is left to the browser. */
export function reservedKey(event: KeyboardEvent, selected: boolean): ReservedKey | null {
  const key = event.key.toLowerCase();
  if (event.ctrlKey && event.shiftKey && !event.altKey && !event.metaKey) {
    if (key === "l") return "leave";
    if (key === "c") return "copy";
    if (key === "f") return "find";
  }
  if ((MAC ? event.metaKey : event.ctrlKey) && !event.shiftKey && !event.altKey) {
    if (key === "f") return "find";
    if (key === "c" && MAC && selected) return "copy";
  }
  return null;
}
