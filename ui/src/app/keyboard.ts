/**
 * Keyboard shortcuts, off while a text field has the focus; in the message field they act with Alt. `?` lists the same table.
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
    if (event.defaultPrevented || event.ctrlKey || event.metaKey) return;
    if (event.altKey) return this.pressAlt(event);
    if (isTyping(event.target) && event.key !== "Escape") return;
    const stroke = this.stroke(event);
    const key = this.keys.get(stroke);
    if (!key) return;
    event.preventDefault();
    if (!event.repeat || key.repeats) key.act();
  };

  /** While a message is written, Alt and a letter act on the card above it. By its place: with Alt a key may mean another letter. */
  private pressAlt(event: KeyboardEvent): void {
    const letter = /^Key([A-Z])$/.exec(event.code)?.[1];
    if (!letter || !(event.target instanceof HTMLElement) || !event.target.matches("[data-composer]")) return;
    const key = this.keys.get(event.shiftKey ? `Shift+${letter}` : letter.toLowerCase());
    if (!key) return;
    event.preventDefault();
    if (!event.repeat) key.act();
  }

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
