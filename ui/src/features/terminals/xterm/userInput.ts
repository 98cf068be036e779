/**
 * Tells user input from replies that output provoked.
 *
 * This is the second barrier (the first is blockedSequences.ts): xterm's data is sent only while the browser
 * dispatches a trusted key, input or paste event, or if it is text that an input method just put into the terminal's
 * text field. A reply to output is made while output is parsed, outside any such event.
 */
export const USER_EVENTS: ReadonlySet<string> = new Set(["keydown", "keypress", "input", "beforeinput", "paste", "compositionend"]);

/** Text without control characters: replies begin with one. */
const PLAIN = /^[^\x00-\x1f\x7f-\x9f]+$/;
const DELETE = "\x7f";
/** Sequences that the wheel may send: up and down, never a pointer report. */
const ARROWS = /^(\x1b[[O][AB])+$/;
/** The longest delay between a key and the deletion that an input method reports for it. */
const METHOD_MS = 100;

export interface InputContext {
  /** The event in dispatch. */
  readonly event: Pick<globalThis.Event, "type" | "isTrusted"> | undefined;
  /** The content of the terminal's text field. */
  readonly field: string;
  /** Milliseconds since a key that the input method handles. */
  readonly sinceMethodKey: number;
  /** The wheel sends arrow keys in a full-screen program, if the person has the terminal. */
  readonly wheelTypes: boolean;
}

export function isUserInput(data: string, { event, field, sinceMethodKey, wheelTypes }: InputContext): boolean {
  if (event?.isTrusted && USER_EVENTS.has(event.type)) return true;
  if (event?.isTrusted && event.type === "wheel") return wheelTypes && ARROWS.test(data);
  if (event !== undefined) return false;
  if (data === DELETE) return sinceMethodKey < METHOD_MS;
  return PLAIN.test(data) && field.includes(data);
}
