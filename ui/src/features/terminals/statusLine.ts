/** The status messages of a terminal; pure. Rendered by terminals/StatusLine.svelte. */
import type { TerminalView, Typed } from "../../api/types.ts";
import type { Tone } from "../../lib/callText.ts";
import { pluralize, sizeText } from "../../lib/duration.ts";
import { inputRequest, inputRequestText } from "../../lib/terminalText.ts";
import { visibleText } from "../../lib/visibleText.ts";

/** A message about the current state of a terminal. */
export interface StatusMessage {
  readonly tone: Tone;
  readonly sign: "needs" | "keyboard" | "gone" | "done" | "alert";
  readonly text: string;
  /** The action that it offers. */
  readonly act?: "search";
}

export interface StatusInput {
  readonly terminal: TerminalView;
  /** The last input that was not a person's. */
  readonly typed: Typed | null;
  /** The connection was lost, and is being restored. */
  readonly lost: boolean;
  /** Offset of the first byte on the screen. */
  readonly begin: number;
  /** The scrollback is full: older lines were dropped. */
  readonly full: boolean;
  readonly refused: string;
  /** The screen is larger than its room: it got a smaller font, or scrolls. */
  readonly larger: "" | "scaled down" | "larger than this view";
}

export function statusMessages({ terminal, typed, lost, begin, full, refused, larger }: StatusInput): StatusMessage[] {
  return [
    ...(lost ? [say("violet", "gone", "The connection was lost; it goes on where it stopped. Keys are not sent meanwhile.")] : []),
    ...(refused ? [say("amber", "alert", refused)] : []),
    ...waits(terminal),
    ...hands(terminal),
    ...older(terminal, begin, full),
    ...(typed && terminal.running ? [say("grey", "keyboard", `${typed.by} typed ${quoted(typed.text)}`)] : []),
    ...(larger ? [say("grey", "keyboard", `${terminal.size.join(" × ")}, ${larger}. ${sizeOwner(terminal)}.`)] : []),
  ];
}

function waits(terminal: TerminalView): StatusMessage[] {
  const asks = inputRequest(terminal);
  if (!asks) return [];
  const only = asks.secret ? " — only you can answer; it is not recorded" : "";
  return [say("amber", "needs", inputRequestText(asks).replace(/^./, (first) => first.toUpperCase()) + only)];
}

function hands({ taken, running }: TerminalView): StatusMessage[] {
  if (!taken || !running) return [];
  if (!taken.holds) return [say("teal", "keyboard", "You are typing: agents cannot type until you pause")];
  return [say("teal", "keyboard", "You are in control. Agents cannot type until you release")];
}

function older({ first, forgotten, lines_dropped }: TerminalView, begin: number, full: boolean): StatusMessage[] {
  if (forgotten) return [say("violet", "gone", "Its output was deleted, to keep within what is kept of ended terminals.")];
  const dropped = lines_dropped ? `, ${pluralize(lines_dropped, "line")}` : "";
  const gone = first > 0 ? `The first ${sizeText(first)}${dropped} were dropped to keep within the limits. ` : "";
  if (begin > first || full) return [{ ...say("grey", "alert", `${gone}Older output has left the screen; searching and downloading have it.`), act: "search" }];
  return gone ? [say("grey", "alert", gone.trim())] : [];
}

function sizeOwner({ attached, taken, owner }: TerminalView): string {
  if (attached) return "The window of handrail shell sets the size";
  if (taken?.holds || owner?.person) return "Type here to resize";
  return "Take over to resize";
}

function quoted(text: string | null): string {
  return text === null ? "something it does not show" : `“${visibleText(text.replace(/[\r\n]+$/, "")).slice(0, 120)}”`;
}

function say(tone: Tone, sign: StatusMessage["sign"], text: string): StatusMessage {
  return { tone, sign, text };
}

/** The default text, so that the line never collapses. */
export function quietly({ running, owner, of }: TerminalView): string {
  if (!running) return "It has ended; its output is kept.";
  if (owner?.person) return "Yours: an agent that wants to type here asks first.";
  return of === "command" ? "It runs for a call; what you type here goes to its program." : "Shared: what an agent and what you type go to the same program.";
}
