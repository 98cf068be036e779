/**
 * Keyboard shortcuts, off while a text field has the focus. `?` lists the same table.
 *
 * Handles single keys and two-key sequences. Whether an action is allowed is decided by the guard (inboxController).
 */
export interface KeyBinding {
  /** As written on buttons and in the help: `a`, `Shift+A`, `g i`. */
  readonly key: string;
  readonly does: string;
  readonly act: () => void;
  /** Also acts on key repeat. */
  readonly repeats?: boolean;
}

/** Timeout between `g` and the second key. */
const SECOND_MS = 1200;

export class Keyboard {
  private readonly keys: ReadonlyMap<string, KeyBinding>;
  private first = "";
  private firstAt = 0;

  constructor(keys: readonly KeyBinding[]) {
    this.keys = new Map(keys.map((key) => [key.key, key]));
  }

  readonly press = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target) && event.key !== "Escape") return;
    const stroke = this.stroke(event);
    const key = this.keys.get(stroke);
    if (!key) return;
    event.preventDefault();
    if (!event.repeat || key.repeats) key.act();
  };

  /** The key's name, with a `g` that came just before. */
  private stroke(event: KeyboardEvent): string {
    const name = named(event);
    const pair = this.first && event.timeStamp - this.firstAt < SECOND_MS ? `${this.first} ${name}` : name;
    this.first = name === "g" && pair === name ? name : "";
    this.firstAt = event.timeStamp;
    return pair;
  }
}

/** Only a real Shift counts, since it confirms high risk; Caps Lock does not. */
function named(event: KeyboardEvent): string {
  if (/^[a-z]$/i.test(event.key)) return event.shiftKey ? `Shift+${event.key.toUpperCase()}` : event.key.toLowerCase();
  return event.key;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
