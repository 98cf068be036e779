/**
 * A call's input as editable fields, and back; pure.
 *
 * Strings are edited as they are, everything else as JSON. The daemon validates the fields.
 */
import type { Json } from "../api/types.ts";

export interface Field {
  readonly name: string;
  readonly text: string;
  /** The text is JSON, since the value is not a string. */
  readonly json: boolean;
}

/** Fields of the command first, then other text, then JSON. */
const FIRST = ["command", "path", "text", "content", "old_string", "new_string", "diff"];

export function inputToFields(input: Json): Field[] {
  const fields = Object.entries(input).map(([name, value]): Field =>
    typeof value === "string" ? { name, text: value, json: false } : { name, text: JSON.stringify(value, null, 2), json: true },
  );
  return fields.sort((a, b) => rank(a) - rank(b));
}

/** The input made of these fields, and the errors by field. */
export function fieldsToInput(fields: readonly Field[]): { readonly input: Json; readonly problems: ReadonlyMap<string, string> } {
  const input: Record<string, unknown> = {};
  const problems = new Map<string, string>();
  for (const { name, text, json } of fields) {
    try {
      input[name] = json ? JSON.parse(text) : text;
    } catch {
      problems.set(name, "This is not JSON yet.");
    }
  }
  return { input: input as Json, problems };
}

export interface FieldChange {
  readonly name: string;
  readonly asked: string | null;
  readonly ran: string | null;
}

/** The fields that a person changed: as asked, and as they ran. */
export function changedFields(asked: Json, ran: Json): FieldChange[] {
  const before = new Map(inputToFields(asked).map((field) => [field.name, field.text]));
  const after = new Map(inputToFields(ran).map((field) => [field.name, field.text]));
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((name) => ({ name, asked: before.get(name) ?? null, ran: after.get(name) ?? null }))
    .filter((change) => change.asked !== change.ran);
}

/** Rows of a text field, within limits. */
export function fieldRows(text: string, most = 12): number {
  return Math.min(most, text.split("\n").reduce((rows, line) => rows + 1 + Math.floor(line.length / 80), 0));
}

function rank({ name, json }: Field): number {
  const at = FIRST.indexOf(name);
  return at >= 0 ? at : json ? FIRST.length + 1 : FIRST.length;
}
