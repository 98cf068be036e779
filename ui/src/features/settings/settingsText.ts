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

/** What each setting is called here. One that is missing shows its name in the file. */
export const SETTING_LABELS: Readonly<Record<string, string>> = {
  human_in_the_loop: "Ask before low-risk calls",
  allow_reading_commands: "Let commands that only read pass",
  default_policy: "When no rule matches",
  "approvals.expire_seconds": "Questions expire after",
  "agent.model": "Model",
  "agent.thought_level": "Thinking",
  "agent.max_steps": "Most steps for a prompt",
  "agent.max_tokens": "Most tokens for a prompt",
  "agent.max_seconds": "Most time for a prompt",
  "agent.compact_at": "Summarise older messages at",
  "agent.context": "Context window",
  "notify.desktop": "Desktop notifications",
  "notify.client_stops": "When a long turn ends",
  "notify.client_asks": "When a client wants your attention",
  "notify.ntfy": "ntfy topic",
  "notify.webhook": "Webhook",
  "notify.after_seconds": "Wait before ntfy and webhook",
  "notify.quiet_hours": "Quiet hours",
  "journal.keep_days": "Keep ended calls",
  "undo.keep_days": "Keep content for undo",
  "undo.keep_bytes": "Space for undo",
  "terminal.max_bytes": "Output of one terminal",
  "terminal.max_lines": "Lines of one terminal",
  "terminal.keep_days": "Keep output of ended terminals",
  "terminal.keep_bytes": "Space for ended terminals",
  "terminal.shell": "Shell",
  "command.wait_seconds": "Hand unfinished calls back after",
  "command.stop_grace": "Patience when stopping",
  "command.env_pass": "Variables that commands get",
  "devices.address": "Address for devices",
  "devices.port": "Port for devices",
  "devices.name": "Host name in the link",
  "devices.behind_proxy": "Behind a proxy",
  "devices.high_risk": "High risk on devices",
  "server.port": "Port of this page",
  "daemon.restart": "Restart after a crash",
  "ahp.enabled": "Serve editors over AHP",
  "ahp.socket": "Socket for editors",
  "ahp.port": "Port for editors",
  "ahp.token": "Token for that port",
  servers: "MCP servers",
};

export function settingLabel(name: string): string {
  return SETTING_LABELS[name] ?? name;
}

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
