/** Parses the filter field: `status:running tool:execute_command agent:claude session:claude:ID asked:nobody free text`; pure. */
import type { CallQuery } from "../../api/client.ts";

export interface CallFilter {
  readonly status?: string;
  readonly tool?: string;
  readonly agent?: string;
  /** A client and its session, as `claude:ID`. */
  readonly session?: string;
  /** `nobody` selects what agents did without asking. */
  readonly asked?: string;
  readonly q?: string;
}

const FIELDS = ["status", "tool", "agent", "session", "asked"] as const;
type Field = (typeof FIELDS)[number];

export const STATUSES = ["waiting", "running", "done", "failed", "denied", "cancelled", "completed", "interrupted"] as const;

/** The last value of a field wins; a field without a value is ignored. */
export function parseFilter(text: string): CallFilter {
  const found: Partial<Record<Field | "q", string>> = {};
  const free: string[] = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const [name, value] = cut(word);
    if (!isField(name)) free.push(word);
    else if (value) found[name] = value;
  }
  if (free.length) found.q = free.join(" ");
  return found;
}

/** Sets or replaces a field of the filter text, or removes it if it already has this value. */
export function toggleFilter(text: string, field: Field, value: string): string {
  const words = text.split(/\s+/).filter(Boolean);
  const rest = words.filter((word) => cut(word)[0] !== field);
  return (words.includes(`${field}:${value}`) ? rest : [...rest, `${field}:${value}`]).join(" ");
}

/** The filter as query parameters. A person may type any status; the daemon rejects an unknown one. */
export function filterQuery({ status, session, asked, ...rest }: CallFilter): CallQuery {
  return {
    ...rest,
    ...(status === undefined ? {} : { status: status as NonNullable<CallQuery["status"]> }),
    ...(asked === "nobody" ? { unasked: true } : {}),
    ...(session === undefined ? {} : { caller: session.replace(":", " ") }),
  };
}

function cut(word: string): [string, string] {
  const at = word.indexOf(":");
  return at < 0 ? ["", word] : [word.slice(0, at).toLowerCase(), word.slice(at + 1)];
}

function isField(name: string): name is Field {
  return (FIELDS as readonly string[]).includes(name);
}
