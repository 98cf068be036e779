/**
 * Whose hand it was: lets through what a person's own events typed, and nothing that output provoked.
 *
 * Owns the second fence (the first is quiet.ts): what xterm wants to send is sent only while the browser
 * dispatches a trusted key, input or paste event, or when it is text that an input method has just put into the
 * terminal's own text field. A reply to output is made while output is parsed, when no such event is under way.
 */
export const USER_EVENTS: ReadonlySet<string> = new Set(["keydown", "keypress", "input", "beforeinput", "paste", "compositionend"]);

/** Text without anything a program could have asked for: replies begin with control characters. */
const PLAIN = /^[^\x00-\x1f\x7f-\x9f]+$/;
const DELETE = "\x7f";
/** What the wheel may type: lines up and down, never a report of where the pointer is. */
const ARROWS = /^(\x1b[[O][AB])+$/;
/** An input method reports a deletion this long after its key, at most. */
const METHOD_MS = 100;

export interface InputContext {
  /** The event that is being dispatched right now. */
  readonly event: Pick<globalThis.Event, "type" | "isTrusted"> | undefined;
  /** What stands in the terminal's text field. */
  readonly field: string;
  /** Milliseconds since a key whose meaning the input method keeps to itself. */
  readonly sinceMethodKey: number;
  /** The wheel turns lines in a full-screen program, when the person has the terminal. */
  readonly wheelTypes: boolean;
}

export function isUserInput(data: string, { event, field, sinceMethodKey, wheelTypes }: InputContext): boolean {
  if (event?.isTrusted && USER_EVENTS.has(event.type)) return true;
  if (event?.isTrusted && event.type === "wheel") return wheelTypes && ARROWS.test(data);
  if (event !== undefined) return false;
  if (data === DELETE) return sinceMethodKey < METHOD_MS;
  return PLAIN.test(data) && field.includes(data);
}
