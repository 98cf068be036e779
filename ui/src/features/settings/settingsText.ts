/** Texts of the settings view; pure. */
import type { StopReceipt } from "../../api/types.ts";
import { pluralize } from "../../lib/duration.ts";

/** Sections of the configuration file, in the order shown, with what they are about. */
export const SECTIONS: readonly { readonly title: string; readonly names: RegExp }[] = [
  { title: "Policy", names: /^(human_in_the_loop|allow_reading_commands|default_policy|approvals\.|rules)/ },
  { title: "Handrail's own agent", names: /^agent\./ },
  { title: "Agents of yours", names: /^agents/ },
  { title: "Desktop notifications", names: /^notify\./ },
  { title: "What is kept, and how long", names: /^(journal|undo)\.|^terminal\.(keep|max)/ },
  { title: "Commands and terminals", names: /^(command|terminal)\./ },
  { title: "Daemon and editors", names: /^(server|daemon|ahp)\./ },
];

/** What *Stop everything* has stopped, as one sentence or two. */
export function receiptText({ operations, calls, terminals, beyond }: StopReceipt): string {
  const parts = [
    ...(operations ? [pluralize(operations, "prompt")] : []),
    ...(calls ? [pluralize(calls, "call")] : []),
    ...(terminals ? [pluralize(terminals, "terminal")] : []),
  ];
  const stopped = parts.length ? `Stopped: ${parts.join(", ")}.` : "Nothing was at work.";
  return beyond ? `${stopped} ${pluralize(beyond, "call")} of clients that run them themselves may go on: stop those in the client.` : stopped;
}

/** A value as it would stand in the file. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? `"${value}"` : JSON.stringify(value);
}
