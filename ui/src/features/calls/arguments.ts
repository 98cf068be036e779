/** The arguments of a call, as a person is asked about them; pure. */
import type { CallView, Json } from "../../api/types.ts";
import { toolInput } from "../clients/clientText.ts";

export interface ArgumentText {
  readonly name: string;
  readonly text: string;
}

/** Tools that stand for a client's or an agent's own tool. Its input is within theirs. */
const WRAPPERS = new Set(["client_work", "agent_work"]);

/** The arguments that nothing else on the card shows whole: of another server's tool, or of a client's own tool without a preview. */
export function askedArguments({ tool, assurance }: Pick<CallView, "tool" | "assurance">, input: Json | undefined, hasPreview: boolean): Json | null {
  if (assurance === "forwarded") return filled(input);
  if (hasPreview || !WRAPPERS.has(tool)) return null;
  const inner = tool === "agent_work" ? input?.input : toolInput(tool, input);
  return inner && typeof inner === "object" && !Array.isArray(inner) ? filled(inner as Json) : null;
}

function filled(input: Json | undefined): Json | null {
  return input && Object.keys(input).length ? input : null;
}

/** Text as it is, everything else as JSON; in the order in which the agent sent them. */
export function argumentTexts(input: Json): ArgumentText[] {
  return Object.entries(input).map(([name, value]) => ({ name, text: typeof value === "string" ? value : JSON.stringify(value, null, 1) }));
}
