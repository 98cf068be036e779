/** Texts, icons and tones for the states of a terminal; pure. One place, so that a terminal looks the same everywhere. */
import type { Asks, Owner, TerminalView } from "../api/types.ts";
import type { StatusLabel } from "./callText.ts";
import { clockText } from "./duration.ts";
import { visibleText } from "./visibleText.ts";

export function terminalStatus(terminal: TerminalView): StatusLabel {
  if (!terminal.running) return ending(terminal);
  const asks = inputRequest(terminal);
  if (asks) return { sign: "needs", tone: "amber", word: asks.sure === "likely" ? "seems to wait" : "waits for input" };
  if (terminal.busy && terminal.foreground) return { sign: "running", tone: "blue", word: `busy: ${visibleText(terminal.foreground)}` };
  if (terminal.busy) return { sign: "running", tone: "blue", word: "busy" };
  return { sign: "running", tone: "blue", word: "running" };
}

function ending({ lost, signal, exit_code }: TerminalView): StatusLabel {
  if (lost) return { sign: "gone", tone: "violet", word: "lost" };
  if (signal) return { sign: "cancelled", tone: "grey", word: signal };
  if (exit_code === 0) return { sign: "done", tone: "green", word: "exit 0" };
  return { sign: "failed", tone: "red", word: exit_code === null ? "ended" : `exit ${exit_code}` };
}

/** The input that a terminal waits for, if it is worth showing: in a person's own terminal only a secret is. */
export function inputRequest({ running, asks, owner }: Pick<TerminalView, "running" | "asks" | "owner">): Asks | null {
  return running && asks && (asks.secret || !owner?.person) ? asks : null;
}

export function ownerName(owner: Owner | null): string {
  if (!owner) return "an agent";
  return owner.person ? "you" : owner.name;
}

/** `waits for input: Password:`, marked as likely if it is not certain. */
export function inputRequestText({ prompt, sure }: Pick<Asks, "prompt" | "sure">): string {
  const text = visibleText(prompt.replace(/\s+/g, " ").trim()).slice(-160);
  return `${sure === "likely" ? "seems to wait for input" : "waits for input"}${text ? `: ${text}` : ""}`;
}

/** Whether a person must be alerted: a secret prompt, or a certain wait. */
export function needsInput(asks: Pick<Asks, "secret" | "sure"> | null, owner: Owner | null): boolean {
  if (!asks || owner?.person) return false; // the person sees their own terminal
  return asks.secret || asks.sure === "certain";
}

/** `12 s`, `4 min`, `3 h`, `2 d`: rounded, so that it rarely changes. */
export function roughDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function ageText(ms: number): string {
  return ms < 3_600_000 ? clockText(ms) : roughDuration(ms);
}
