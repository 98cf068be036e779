/**
 * A call's input as fields a person can edit, and back; pure.
 *
 * Text is edited as it is; everything else as JSON. It does not know which fields a tool takes: the daemon says so.
 */
import type { Json } from "../api/types.ts";

export interface Field {
  readonly name: string;
  readonly text: string;
  /** Its text is JSON, since the value is none. */
  readonly json: boolean;
}

/** What runs stands first, then other text, then the rest. */
const FIRST = ["command", "path", "text", "content", "old_string", "new_string", "diff"];

export function inputToFields(input: Json): Field[] {
  const fields = Object.entries(input).map(([name, value]): Field =>
    typeof value === "string" ? { name, text: value, json: false } : { name, text: JSON.stringify(value, null, 2), json: true },
  );
  return fields.sort((a, b) => rank(a) - rank(b));
}

/** The input these fields make, or what is wrong with which of them. */
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

/** What a person changed: field by field, as asked and as it ran. */
export function changedFields(asked: Json, ran: Json): FieldChange[] {
  const before = new Map(inputToFields(asked).map((field) => [field.name, field.text]));
  const after = new Map(inputToFields(ran).map((field) => [field.name, field.text]));
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((name) => ({ name, asked: before.get(name) ?? null, ran: after.get(name) ?? null }))
    .filter((change) => change.asked !== change.ran);
}

/** Lines a field needs, within reason. */
export function fieldRows(text: string, most = 12): number {
  return Math.min(most, text.split("\n").reduce((rows, line) => rows + 1 + Math.floor(line.length / 80), 0));
}

function rank({ name, json }: Field): number {
  const at = FIRST.indexOf(name);
  return at >= 0 ? at : json ? FIRST.length + 1 : FIRST.length;
}
