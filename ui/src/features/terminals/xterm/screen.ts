/**
 * One terminal's screen: xterm with blocked sequences, a write queue, and input from user events only.
 *
 * Owns the xterm object. The output source and the layout around the screen are elsewhere
 * (terminals/TerminalPane.svelte).
 */
import "@xterm/xterm/css/xterm.css";

import { SearchAddon } from "@xterm/addon-search";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";

import { type Extent, fittingFontSize, gridSize } from "../fontSize.ts";
import { safeLink } from "../safeLink.ts";
import { matchColours, xtermTheme } from "./theme.ts";
import { WriteQueue } from "./writeQueue.ts";
import { Gutter } from "./gutter.ts";
import { isUserInput } from "./userInput.ts";
import { measureCell, openLink, xtermOptions, SCROLLBACK } from "./options.ts";
import { reservedKey } from "./reservedKeys.ts";
import { blockSequences } from "./blockedSequences.ts";

const METHOD_KEY = 229;

export interface ScreenListener {
  typed(keys: Uint8Array): void;
  /** A paste was requested; the listener decides whether to call `paste`. */
  pasted(text: string): void;
  titled(title: string): void;
  /** The pointer is on a link with this URL, or left it. */
  pointed(address: string | null): void;
  found(at: number, count: number): void;
  /** The viewport changed. */
  drawn(): void;
  /** A reserved key was pressed. */
  asked(what: "leave" | "find" | "copy"): void;
}

export class Screen {
  readonly term: Terminal;
  readonly gutter: Gutter;
  readonly feed: WriteQueue;
  /** The wheel may send arrow keys to a full-screen program. */
  wheelTypes = false;
  private readonly search = new SearchAddon();
  private readonly encoder = new TextEncoder();
  private methodKeyAt = Number.NEGATIVE_INFINITY;
  private byUs = false;
  private readonly host: HTMLElement;

  constructor(host: HTMLElement, size: readonly [number, number], watcher: ScreenListener) {
    this.host = host;
    this.term = new Terminal(xtermOptions(size, (address) => watcher.pointed(address)));
    this.gutter = new Gutter(this.term, () => this.feed.at);
    this.feed = new WriteQueue((bytes, parsed) => this.term.write(bytes, parsed), afterDrawing);
    blockSequences(this.term.parser);
    this.addons(watcher);
    this.term.open(host);
    this.listen(watcher);
  }

  dispose(): void {
    this.term.dispose();
  }

  /** Prints a message between the output, and resets the state after it. */
  say(words: string): void {
    this.term.write(`\x1b[!p\x1b[?1049l\x1b[0m\r\n\x1b[2m⋯ ${words} ⋯\x1b[0m\r\n`);
  }

  alternate(): void {
    this.term.write("\x1b[?1049h");
  }

  /** Pastes text that was confirmed, or needed no confirmation. */
  paste(text: string): void {
    this.byUs = true;
    try {
      this.term.paste(text);
    } finally {
      this.byUs = false;
    }
  }

  /** Sets the grid, in the largest font that fits, but no smaller one than `least`. */
  fit(room: Extent, size: readonly [number, number], least?: number): void {
    if (this.term.cols !== size[0] || this.term.rows !== size[1]) this.term.resize(size[0], size[1]);
    const letter = fittingFontSize(room, size, measureCell, least);
    if (this.term.options.fontSize !== letter) this.term.options.fontSize = letter;
  }

  sizeIn(room: Extent, letter?: number): [number, number] {
    return gridSize(room, measureCell, letter);
  }

  paintAnew(): void {
    this.term.options.theme = xtermTheme();
  }

  find(text: string, step: -1 | 0 | 1): void {
    if (!text) return this.search.clearDecorations();
    const how = { decorations: matchColours(), incremental: step === 0 };
    if (step < 0) this.search.findPrevious(text, how);
    else this.search.findNext(text, how);
  }

  forgetFind(): void {
    this.search.clearDecorations();
    this.term.clearSelection();
  }

  /** The scrollback is full. */
  get full(): boolean {
    return this.term.buffer.normal.length >= SCROLLBACK + this.term.rows;
  }

  /** Scrolls a line to the top. After a resize the scrollbar may lag; scrolling by one line and back corrects it. */
  scrollTo(line: number): void {
    this.term.scrollToLine(line);
    if (this.term.buffer.active.viewportY === line) return;
    this.term.scrollLines(line === 0 ? 1 : -1);
    this.term.scrollToLine(line);
  }

  get following(): boolean {
    const { viewportY, baseY } = this.term.buffer.active;
    return viewportY >= baseY;
  }

  private addons(watcher: ScreenListener): void {
    this.term.loadAddon(new Unicode11Addon());
    this.term.unicode.activeVersion = "11";
    this.term.loadAddon(this.search);
    this.term.loadAddon(
      new WebLinksAddon((event, address) => openLink(event, address), {
        hover: (_, address) => watcher.pointed(safeLink(address)),
        leave: () => watcher.pointed(null),
      }),
    );
  }

  private listen(watcher: ScreenListener): void {
    this.term.onData((data) => {
      if (this.byUs || isUserInput(data, this.moment())) watcher.typed(this.encoder.encode(data));
    });
    this.term.onTitleChange((title) => watcher.titled(title));
    this.search.onDidChangeResults(({ resultIndex, resultCount }) => watcher.found(resultIndex, resultCount));
    this.term.onRender(() => watcher.drawn());
    this.term.attachCustomKeyEventHandler((event) => {
      if (event.keyCode === METHOD_KEY) this.methodKeyAt = performance.now();
      const what = reservedKey(event, this.term.hasSelection());
      if (!what) return true;
      event.preventDefault();
      event.stopPropagation();
      if (event.type === "keydown" && !event.repeat) watcher.asked(what);
      return false;
    });
    this.host.addEventListener("keydown", (event) => event.stopPropagation()); // not a reserved key
    this.term.attachCustomWheelEventHandler(() => this.wheelTypes || this.term.buffer.active.type === "normal");
    this.host.addEventListener(
      "paste",
      (event) => {
        event.preventDefault();
        event.stopImmediatePropagation();
        watcher.pasted(event.clipboardData?.getData("text/plain") ?? "");
      },
      { capture: true },
    );
  }

  private moment(): Parameters<typeof isUserInput>[1] {
    return {
      event: window.event,
      field: this.term.textarea?.value ?? "",
      sinceMethodKey: performance.now() - this.methodKeyAt,
      wheelTypes: this.wheelTypes,
    };
  }
}

/** A hidden page renders nothing, but the queue goes on. */
function afterDrawing(go: () => void): void {
  if (document.hidden) setTimeout(go);
  else requestAnimationFrame(go);
}
