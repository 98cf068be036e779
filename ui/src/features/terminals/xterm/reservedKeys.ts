/** The few keys in a terminal that are not its program's; pure. */

const MAC = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

export type ReservedKey = "leave" | "find" | "copy";

/** Which of them this is, if any. Pasting is the browser's own. */
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
