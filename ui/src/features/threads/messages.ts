/**
 * The messages of a thread, merged from snapshots, older pages and the live socket; pure.
 *
 * Guarantees no gap and no repeat. Untouched messages keep their identity.
 */
import type { Growth, Message, Part, ThreadFlow } from "../../api/types.ts";

export type Messages = readonly Message[];

/** Messages that are rendered together. */
export interface Chunk {
  readonly key: number;
  readonly messages: Messages;
}

/** Messages per chunk: few chunks for a long thread, each rendered within one frame. */
const CHUNK = 8;

/** Merges newer messages; a gap between both drops the older ones. */
export function mergeNewer(known: Messages, fresh: Messages): Messages {
  const first = fresh[0];
  const last = known.at(-1);
  if (!first || !last) return fresh.length ? fresh : known;
  if (first.n > last.n + 1) return fresh;
  const same = new Map(known.map((message) => [message.id, message]));
  const kept = known.filter(({ n }) => n < first.n);
  return [...kept, ...fresh.map((message) => alike(same.get(message.id), message))];
}

/** Prepends older messages. */
export function prependOlder(known: Messages, older: Messages): Messages {
  const first = known[0];
  return first ? [...older.filter(({ n }) => n < first.n), ...known] : older;
}

/**
 * Applies a frame of the live socket; null if something is missing before it and a snapshot is needed. `apart`: the
 * end is not loaded, so that new messages are ignored.
 */
export function applyFlow(messages: Messages, flow: Pick<ThreadFlow, "messages" | "parts" | "dropped" | "reset">, apart = false): Messages | null {
  if (flow.reset && apart) return messages;
  const heads = flow.reset ? mergeNewer(messages, flow.messages) : headed(messages, flow.messages, apart);
  const kept = flow.dropped.length ? heads.filter(({ id }) => !flow.dropped.includes(id)) : heads;
  return flow.parts.reduce<Messages | null>((known, growth) => known && grown(known, growth), kept);
}

/** Messages that began, ended or moved; their parts stay. */
function headed(messages: Messages, heads: Messages, apart: boolean): Messages {
  if (heads.length === 0) return messages;
  const next = [...messages];
  for (const head of heads) {
    const at = indexOf(next, head.id);
    const known = next[at];
    if (known) next[at] = { ...head, parts: known.parts };
    else if (!apart) next.push(head);
  }
  return next.sort((one, other) => one.n - other.n);
}

function grown(messages: Messages, growth: Growth): Messages | null {
  const at = indexOf(messages, growth.message);
  const message = messages[at];
  if (!message) return messages; // older than the loaded range
  const parts = withGrowth(message.parts, growth);
  return parts && replaced(messages, at, { ...message, parts });
}

/** Groups messages into chunks; an unchanged chunk keeps its identity. */
export function chunkMessages(messages: Messages, before: readonly Chunk[] = []): readonly Chunk[] {
  const known = new Map(before.map((chunk) => [chunk.key, chunk]));
  const groups = new Map<number, Message[]>();
  for (const message of messages) {
    const key = Math.floor(message.n / CHUNK);
    const group = groups.get(key);
    if (group) group.push(message);
    else groups.set(key, [message]);
  }
  return [...groups].map(([key, messages]) => {
    const was = known.get(key);
    return was && equal(was.messages, messages) ? was : { key, messages };
  });
}

/** The text parts of a message, as source. */
export function messageText({ parts }: Pick<Message, "parts">): string {
  return parts.filter(({ kind }) => kind === "text").map(({ text }) => text).join("\n\n").trim();
}

function withGrowth(parts: readonly Part[], { n, kind, at, text, data }: Growth): Part[] | null {
  const place = parts.findIndex((part) => part.n === n);
  const part = parts[place];
  if (!part) return at === 0 ? [...parts, { n, kind, text, data: data ?? {} }].sort((a, b) => a.n - b.n) : null;
  const whole = spliced(part.text, at, text);
  if (whole === null) return null;
  const next = [...parts];
  next[place] = { ...part, kind, text: whole, data: data ?? part.data };
  return next;
}

/** The daemon counts code points, JavaScript counts UTF-16 units. */
function spliced(known: string, at: number, text: string): string | null {
  if (at === 0) return text;
  if (at === known.length && !ASTRAL.test(known)) return known + text;
  const characters = [...known];
  if (at > characters.length) return null;
  return (at === characters.length ? known : characters.slice(0, at).join("")) + text;
}

const ASTRAL = /[\ud800-\udbff]/;

function indexOf(messages: Messages, id: string): number {
  return messages.findLastIndex((message) => message.id === id);
}

function replaced(messages: Messages, at: number, message: Message): Messages {
  const next = [...messages];
  next[at] = message;
  return next;
}

function alike(known: Message | undefined, fresh: Message): Message {
  return known && JSON.stringify(known) === JSON.stringify(fresh) ? known : fresh;
}

function equal(one: Messages, other: Messages): boolean {
  return one.length === other.length && one.every((message, at) => message === other[at]);
}
