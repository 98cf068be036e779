/**
 * The words and signs of the page for terminals; pure. One place, so that a terminal reads the same in the
 * list, above its screen and on the row of its call.
 */
import type { Asks, Owner, TerminalView, Typed } from "../types.ts";
import { spelledOut } from "./exact.ts";
import { clockText, counted, sizeText } from "./time.ts";
import type { Standing, Tone } from "./words.ts";

export function terminalStanding(terminal: TerminalView): Standing {
  if (!terminal.running) return ending(terminal);
  if (terminal.asks) return { sign: "needs", tone: "amber", word: "waits for input" };
  if (terminal.busy && terminal.foreground) return { sign: "running", tone: "blue", word: `busy: ${spelledOut(terminal.foreground)}` };
  if (terminal.busy) return { sign: "running", tone: "blue", word: "busy" };
  return { sign: "running", tone: "blue", word: "running" };
}

function ending({ lost, signal, exit_code }: TerminalView): Standing {
  if (lost) return { sign: "gone", tone: "violet", word: "lost" };
  if (signal) return { sign: "cancelled", tone: "grey", word: `ended: ${signal}` };
  if (exit_code === 0) return { sign: "done", tone: "green", word: "ended 0" };
  return { sign: "failed", tone: "red", word: exit_code === null ? "ended" : `ended ${exit_code}` };
}

export function ownerName(owner: Owner | null): string {
  if (!owner) return "an agent";
  return owner.person ? "you" : owner.name;
}

/** `waits for input: Password:`, with how sure that is where it is not certain. */
export function asking({ prompt, sure }: Pick<Asks, "prompt" | "sure">): string {
  const text = spelledOut(prompt.replace(/\s+/g, " ").trim()).slice(-160);
  return `${sure === "likely" ? "seems to wait for input" : "waits for input"}${text ? `: ${text}` : ""}`;
}

/** Whether a person must know of it at once: a secret only they can give, or a wait that is no guess. */
export function isUrgent(asks: Pick<Asks, "secret" | "sure"> | null, owner: Owner | null): boolean {
  if (!asks || owner?.person) return false; // their own terminal is before their eyes
  return asks.secret || asks.sure === "certain";
}

/** `12 s`, `4 min`, `3 h`, `2 d`: roughly, and steadily. */
export function roughly(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function age(ms: number): string {
  return ms < 3_600_000 ? clockText(ms) : roughly(ms);
}

/** Does a terminal match what stands in the filter: every word somewhere, `state:` and `owner:` in their place. */
export function matches(terminal: TerminalView, filter: string): boolean {
  const { word } = terminalStanding(terminal);
  const all = [terminal.id, terminal.name, terminal.cwd, ownerName(terminal.owner), word, terminal.shell].join("\n").toLowerCase();
  return filter.toLowerCase().split(/\s+/).filter(Boolean).every((one) => {
    const [, field, value] = /^(state|owner):(.*)$/.exec(one) ?? [];
    if (field === "state") return (terminal.running ? `running ${word}` : `ended ${word}`).includes(value ?? "");
    if (field === "owner") return ownerName(terminal.owner).toLowerCase().includes(value ?? "");
    return all.includes(one);
  });
}


/** A line above the screen: what is true of this terminal right now, the most urgent first. */
export interface Remark {
  readonly tone: Tone;
  readonly sign: "needs" | "keyboard" | "gone" | "done" | "alert";
  readonly text: string;
  /** What a person can do about it. */
  readonly act?: "search";
}

export interface Shown {
  readonly terminal: TerminalView;
  /** The last input that was not a person's. */
  readonly typed: Typed | null;
  /** Its connection was lost, and is being made again. */
  readonly lost: boolean;
  /** Offset of the first byte on the screen. */
  readonly begin: number;
  /** The screen keeps no more lines: older ones have left it. */
  readonly full: boolean;
  readonly refused: string;
  readonly letterboxed: boolean;
}

export function remarks({ terminal, typed, lost, begin, full, refused, letterboxed }: Shown): Remark[] {
  return [
    ...(lost ? [say("violet", "gone", "The connection was lost; it goes on where it stopped. Keys are not sent meanwhile.")] : []),
    ...(refused ? [say("amber", "alert", refused)] : []),
    ...waits(terminal),
    ...hands(terminal),
    ...older(terminal, begin, full),
    ...(typed && terminal.running ? [say("grey", "keyboard", `${typed.by} typed ${quoted(typed.text)}`)] : []),
    ...(letterboxed ? [say("grey", "keyboard", `Drawn smaller than usual, at its own ${terminal.size.join(" × ")}: ${sizeOwner(terminal)}.`)] : []),
  ];
}

function waits({ asks, running }: TerminalView): Remark[] {
  if (!asks || !running) return [];
  const only = asks.secret ? " — only you can answer; it is not recorded" : "";
  return [say("amber", "needs", asking(asks).replace(/^./, (first) => first.toUpperCase()) + only)];
}

function hands({ taken, running }: TerminalView): Remark[] {
  if (!taken || !running) return [];
  if (!taken.holds) return [say("teal", "keyboard", "You are typing: agents cannot type until you pause")];
  return [say("teal", "keyboard", "You have it: agents cannot type until you release it")];
}

function older({ first, forgotten, lines_dropped }: TerminalView, begin: number, full: boolean): Remark[] {
  if (forgotten) return [say("violet", "gone", "Its output was deleted, to keep within what is kept of ended terminals.")];
  const dropped = lines_dropped ? `, ${counted(lines_dropped, "line")}` : "";
  const gone = first > 0 ? `The first ${sizeText(first)}${dropped} were dropped to keep within the limits. ` : "";
  if (begin > first || full) return [{ ...say("grey", "alert", `${gone}Older output has left the screen; searching and downloading have it.`), act: "search" }];
  return gone ? [say("grey", "alert", gone.trim())] : [];
}

function sizeOwner({ attached, taken, owner }: TerminalView): string {
  if (attached) return "the window of handrail shell sets it";
  if (taken?.holds || owner?.person) return "type here to fit it to this page";
  return "take it over to fit it to this page";
}

function quoted(text: string | null): string {
  return text === null ? "something it does not show" : `“${spelledOut(text.replace(/[\r\n]+$/, "")).slice(0, 120)}”`;
}

function say(tone: Tone, sign: Remark["sign"], text: string): Remark {
  return { tone, sign, text };
}

/** What stands there when nothing is to be said, so that nothing moves when something is. */
export function quietly({ running, owner, of }: TerminalView): string {
  if (!running) return "It has ended; its output is kept.";
  if (owner?.person) return "Yours: an agent that wants to type here asks first.";
  return of === "command" ? "It runs for a call; what you type here goes to its program." : "Shared: what an agent and what you type go to the same program.";
}
