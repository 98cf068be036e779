/**
 * Forms that agents ask a person to fill in: fields from JSON Schema, and values back; pure.
 *
 * Covers the flat subset of JSON Schema that such forms use. The daemon validates the values.
 */
import type { Json } from "../../api/types.ts";

export interface Choice {
  readonly value: string;
  readonly word: string;
}

export interface FormField {
  readonly name: string;
  readonly title: string;
  readonly note: string;
  readonly kind: "text" | "number" | "boolean" | "choice" | "several";
  readonly input: "text" | "email" | "url" | "date" | "datetime-local";
  readonly choices: readonly Choice[];
  readonly required: boolean;
  readonly value: FieldValue;
}

export type FieldValue = string | boolean | readonly string[];

export function formFields(schema: Json): FormField[] {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(record(schema.properties)).map(([name, told]) => {
    const field = record(told);
    const choices = choicesOf(field, "oneOf");
    const kind = field.type === "boolean" ? "boolean" : field.type === "number" || field.type === "integer" ? "number" : field.type === "array" ? "several" : choices.length ? "choice" : "text";
    return {
      name,
      title: text(field.title) || name,
      note: text(field.description),
      kind,
      input: INPUTS[text(field.format)] ?? "text",
      choices: kind === "several" ? choicesOf(record(field.items), "anyOf") : choices,
      required: required.includes(name),
      value: began(kind, field.default),
    };
  });
}

/** The values to send; empty optional fields are left out. */
export function formValues(fields: readonly FormField[], filled: ReadonlyMap<string, FieldValue>): Json {
  const values: Json = {};
  for (const { name, kind, input, value } of fields) {
    const given = filled.get(name) ?? value;
    if (kind === "boolean") values[name] = given === true;
    else if (Array.isArray(given)) values[name] = [...given];
    else if (given === "") continue;
    else if (kind === "number") values[name] = Number.isFinite(Number(given)) ? Number(given) : String(given);
    else values[name] = input === "datetime-local" ? new Date(String(given)).toISOString() : String(given);
  }
  return values;
}

const INPUTS: Record<string, FormField["input"]> = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

function began(kind: FormField["kind"], given: unknown): FieldValue {
  if (kind === "boolean") return given === true;
  if (kind === "several") return Array.isArray(given) ? given.map(String) : [];
  return given === undefined || given === null ? "" : String(given);
}

function choicesOf(field: Json, titled: string): Choice[] {
  if (Array.isArray(field.enum)) {
    const names = Array.isArray(field.enumNames) ? field.enumNames : [];
    return field.enum.map((value, at) => ({ value: String(value), word: text(names[at]) || String(value) }));
  }
  const list = field[titled];
  return Array.isArray(list) ? list.map(record).map((one) => ({ value: text(one.const), word: text(one.title) || text(one.const) })) : [];
}

function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
