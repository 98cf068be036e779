/** Texts of the settings view; pure. */
import type { SettingValue, SettingView, StopReceipt } from "../../api/types.ts";
import { pluralize, sizeText } from "../../lib/duration.ts";

/** Sections of the configuration file, in the order shown, with what they are about. */
export const SECTIONS: readonly { readonly title: string; readonly names: RegExp }[] = [
  { title: "Policy", names: /^(human_in_the_loop|allow_reading_commands|default_policy|approvals\.|rules)/ },
  { title: "Handrail's own agent", names: /^agent\./ },
  { title: "Notifications of this machine", names: /^notify\./ },
  { title: "What is kept, and how long", names: /^(journal|undo)\.|^terminal\.(keep|max)/ },
  { title: "Commands and terminals", names: /^(command|terminal)\./ },
  { title: "Phones and other devices", names: /^devices\./ },
  { title: "Daemon, editors and MCP servers", names: /^(server|daemon|ahp)\.|^servers$/ },
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

/** A number of bytes in a unit that is easier to read; empty for anything else. */
export function bytesText(name: string, value: unknown): string {
  return name.endsWith("bytes") && typeof value === "number" && value >= 1000 ? `That is ${sizeText(value)}.` : "";
}

/** A value as a person types it in a field. */
export function typingText(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : value === null || value === undefined ? "" : String(value);
}

/** What was typed, as the setting takes it: nothing is the default. Undefined if it is not of that kind. */
export function typedValue({ kind }: SettingView["field"], typed: string): SettingValue | undefined {
  const text = typed.trim();
  if (text === "") return null;
  if (kind === "names") return text.split(/[\s,]+/).filter(Boolean);
  if (kind !== "number") return text;
  const number = Number(text.replaceAll("_", ""));
  return Number.isFinite(number) ? number : undefined;
}

/** What a change did, as a sentence. */
export function changeText(name: string, value: SettingValue, secret: boolean): string {
  if (value === null) return `${name} has its default again.`;
  return secret ? `${name} is set.` : `${name} is ${valueText(value)} now.`;
}

/** What a change that lets more calls pass means; empty for any other. */
export function looserPolicy(name: string, value: SettingValue): string {
  if (name === "default_policy" && value === "allow") return "Calls that no rule matches will run without asking you, in trusted folders. High risk still asks.";
  if (name === "human_in_the_loop" && value === false) return "Low-risk calls will run without asking you.";
  return "";
}
