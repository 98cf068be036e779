/**
 * One open terminal: its state, its output on the way to the screen, and the input on the way back.
 *
 * Attaches, resumes without gap or repeat, skips floods, and tracks who sets the size. Input is passed through and
 * never stored. xterm itself is in terminals/xterm/.
 */
import type { AttachListener, Attachment, ConnectionState, StartOffset } from "../../api/terminalSocket.ts";
import type { AttachRefused, AttachState, TerminalDetail, TerminalView } from "../../api/types.ts";
import { sizeText } from "../../lib/duration.ts";
import { OutputCursor } from "./outputCursor.ts";
import type { Screen } from "./xterm/screen.ts";

export type AttachFunction = (from: StartOffset, listener: AttachListener) => Attachment;

/** Output to replay when a terminal is opened: more than the scrollback holds of plain text. */
const AT_FIRST = 2 << 20;
/** Output to replay after a flood was skipped. */
const AFTER_FLOOD = 256 << 10;

export class TerminalSession {
  view = $state.raw<TerminalView | null>(null);
  line = $state<ConnectionState>("down");
  /** It was connected before. */
  wasUp = $state(false);
  /** Offset of the first byte on this screen. */
  begin = $state(0);
  /** Offset after the last byte that came. */
  end = $state(0);
  leftOut = $state(0);
  refused = $state("");
  /** The size follows this page. */
  holds = $state(false);
  private place = new OutputCursor();
  /** The daemon accepts sizes from this page. */
  private sizes = false;
  /** The alternate screen is active after the gap. */
  private alternate = false;
  private attachment: Attachment | undefined;
  private readonly screen: Screen;
  private readonly attach: AttachFunction;

  constructor(screen: Screen, attach: AttachFunction, detail: TerminalDetail) {
    this.screen = screen;
    this.attach = attach;
    this.view = detail;
    screen.gutter.nonce = detail.nonce;
    this.attachment = this.attach({ tail: AT_FIRST }, {
      frame: (frame) => this.take(frame),
      state: (message) => this.hear(message),
      refused: (message) => this.refuse(message),
      line: (line) => this.hang(line),
    });
  }

  stop(): void {
    this.attachment?.detach();
  }

  /** The screen was rendered: update the byte count. */
  drawn(): void {
    this.end = this.place.end ?? 0;
  }

  /** Sends typed bytes; false if the socket is down. */
  type(keys: Uint8Array): boolean {
    this.refused = "";
    return this.attachment?.type(keys) ?? false;
  }

  /** This page sets the size from now on. */
  hold(size: [number, number]): void {
    this.holds = true;
    this.resize(size);
  }

  resize(size: [number, number]): void {
    if (this.holds && this.view?.size.join() !== size.join()) this.attachment?.resize(...size);
  }

  private take(frame: { offset: number; bytes: Uint8Array }): void {
    const { bytes, at, missing } = this.place.take(frame);
    if (missing) this.miss(missing);
    if (bytes.length && !this.screen.feed.take(bytes, at)) this.skip(at);
  }

  private hear({ state, sizes, begin, alternate }: AttachState): void {
    this.view = state;
    if (this.sizes && !sizes) this.holds = false; // another person has typed since
    this.sizes = sizes;
    if (begin !== null && begin !== undefined) {
      this.alternate = alternate === true;
      if (this.place.end === null) this.start(begin);
    }
  }

  private start(begin: number): void {
    this.begin = this.place.end = begin;
    if (this.alternate) this.screen.alternate();
  }

  private refuse({ refused, what }: AttachRefused): void {
    if (what === "size") this.holds = false;
    else this.refused = refused;
  }

  private hang(line: ConnectionState): void {
    this.line = line;
    if (line === "up") this.wasUp = true;
  }

  /** Bytes that are no longer kept, or were skipped. */
  private miss(count: number): void {
    this.leftOut += count;
    this.screen.gutter.clear();
    this.screen.say(`${sizeText(count)} left out`);
    if (this.alternate) this.screen.alternate();
  }

  /** The page is far behind: drop the queue and restart near the end. */
  private skip(at: number): void {
    this.place.end = at - this.screen.feed.drop();
    this.attachment?.restart({ tail: AFTER_FLOOD });
  }
}
