/**
 * Marks in the gutter at the lines where commands began: their exit state, and targets to jump to.
 *
 * Made while output is parsed, and only from marks with the terminal's nonce.
 */
import type { IDecoration, IMarker, Terminal } from "@xterm/xterm";

import { type Mark, parseMark } from "../shellMarks.ts";

/** More marks than the scrollback can hold. */
const MOST = 1000;

export interface CommandMark {
  readonly marker: IMarker;
  /** The offset at which its output begins. */
  readonly at: number;
  exitCode: number | null;
  ended: boolean;
  line: string;
  decoration: IDecoration | undefined;
}

export class Gutter {
  signs: CommandMark[] = [];
  nonce = "";
  private prompt: IMarker | undefined;
  private line = "";
  private readonly term: Terminal;
  private readonly offset: () => number;

  constructor(term: Terminal, offset: () => number) {
    this.term = term;
    this.offset = offset;
    for (const code of [133, 633] as const)
      term.parser.registerOscHandler(code, (data) => {
        const mark = parseMark(code, data, this.nonce);
        if (mark) this.take(mark);
        return true;
      });
  }

  /** The mark of the command whose output begins near this offset. */
  of(command: { readonly begin: number; readonly output: number }): CommandMark | undefined {
    return this.signs.find(({ at, marker }) => !marker.isDisposed && at >= command.begin && at <= command.output);
  }

  /** The line of the previous or next command, relative to the viewport. */
  beside(step: -1 | 1): number | null {
    const top = this.term.buffer.active.viewportY;
    const lines = this.signs.filter(({ marker }) => !marker.isDisposed).map(({ marker }) => marker.line);
    return (step < 0 ? lines.findLast((line) => line < top) : lines.find((line) => line > top)) ?? null;
  }

  clear(): void {
    for (const { marker } of this.signs) marker.dispose();
    this.signs = [];
    this.prompt = undefined;
  }

  private take(mark: Mark): void {
    switch (mark.kind) {
      case "prompt":
      case "typing":
        if (this.term.buffer.active.type === "normal") this.prompt = this.term.registerMarker(0);
        return;
      case "line":
        this.line = mark.line;
        return;
      case "output":
        return this.begin();
      case "ended":
        return this.end(mark.exitCode);
    }
  }

  private begin(): void {
    const marker = this.prompt;
    this.prompt = undefined;
    if (!marker || marker.isDisposed) return;
    const sign: CommandMark = { marker, at: this.offset(), exitCode: null, ended: false, line: this.line, decoration: undefined };
    this.line = "";
    sign.decoration = this.term.registerDecoration({ marker, x: 0, width: 1 });
    sign.decoration?.onRender((element) => paint(element, sign));
    this.signs.push(sign);
    if (this.signs.length > MOST) this.signs.shift()?.marker.dispose();
  }

  private end(exitCode: number | null): void {
    const sign = this.signs.at(-1);
    if (!sign || sign.ended) return;
    sign.ended = true;
    sign.exitCode = exitCode;
    if (sign.decoration?.element) paint(sign.decoration.element, sign);
  }
}

function paint(element: HTMLElement, { ended, exitCode }: CommandMark): void {
  const tone = !ended ? "blue" : exitCode === 0 ? "green" : exitCode === null ? "grey" : "red";
  const sign = !ended ? "◐" : exitCode === 0 ? "✓" : exitCode === null ? "·" : `✗${exitCode}`;
  if (element.dataset.sign === sign) return;
  element.className = `xterm-decoration gutter ${tone}`;
  element.dataset.sign = sign;
  element.textContent = sign;
  element.title = !ended ? "runs" : exitCode === null ? "ended" : `exit code ${exitCode}`;
  element.setAttribute("aria-hidden", "true"); // the list of commands has the same facts as text
}
