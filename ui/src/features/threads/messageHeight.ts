/** Estimates the height of messages that are not rendered yet; pure. Rendered ones are measured (VirtualMessageList). */
import type { Message, Part } from "../../api/types.ts";
import type { Chunk } from "./messages.ts";

const LINE = 21;
/** Characters per line on a wide page. */
const LETTERS = 105;
const AROUND: Record<Message["role"], number> = { user: 68, assistant: 44, system: 12 };

export function estimateHeight({ messages }: Chunk): number {
  return messages.reduce((sum, { role, parts }) => sum + AROUND[role] + parts.reduce((inner, part) => inner + ofPart(part), 0), 0);
}

function ofPart({ kind, text }: Part): number {
  if (kind === "call") return 38;
  if (kind === "plan") return 120;
  if (kind === "image") return 230;
  if (kind !== "text") return 30;
  return 8 + LINE * text.split("\n").reduce((lines, line) => lines + Math.max(1, Math.ceil(line.length / LETTERS)), 0);
}
