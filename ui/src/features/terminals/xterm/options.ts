/** xterm's options: font, links, scrollback. */
import type { ITerminalInitOnlyOptions, ITerminalOptions } from "@xterm/xterm";

import { type Extent, FONT_SIZE } from "../fontSize.ts";
import { safeLink } from "../safeLink.ts";
import { xtermTheme } from "./theme.ts";

/** Scrollback lines; older output is searched or downloaded through the daemon. */
export const SCROLLBACK = 10_000;
const LINE = 1.15;

export function xtermOptions(size: readonly [number, number], pointed: (address: string | null) => void): ITerminalOptions & ITerminalInitOnlyOptions {
  return {
    cols: size[0],
    rows: size[1],
    allowProposedApi: true, // for decorations, and widths of newer characters
    altClickMovesCursor: false,
    cursorBlink: false,
    cursorInactiveStyle: "outline",
    fontFamily: mono(),
    fontSize: FONT_SIZE,
    lineHeight: LINE,
    linkHandler: {
      activate: (event, address) => openLink(event, address),
      hover: (_, address) => pointed(safeLink(address)),
      leave: () => pointed(null),
      allowNonHttpProtocols: false,
    },
    logLevel: "off",
    macOptionIsMeta: false,
    minimumContrastRatio: 4.5,
    rightClickSelectsWord: false,
    scrollback: SCROLLBACK,
    theme: xtermTheme(),
  };
}

/** Opens only on a modified click, only http(s), and without opener or referrer. */
export function openLink(event: MouseEvent, text: string): void {
  const address = safeLink(text);
  if (address && event.isTrusted && (event.ctrlKey || event.metaKey)) window.open(address, "_blank", "noopener,noreferrer");
}

/** The cell size as xterm renders it: whole device pixels high. */
export function measureCell(letter: number): Extent {
  const context = (measured ??= document.createElement("canvas").getContext("2d"));
  if (!context) return { width: 0.6 * letter, height: LINE * letter };
  context.font = `${letter}px ${mono()}`;
  const { width, fontBoundingBoxAscent, fontBoundingBoxDescent } = context.measureText("W");
  const height = Math.ceil((fontBoundingBoxAscent + fontBoundingBoxDescent) * devicePixelRatio);
  return { width, height: Math.floor(height * LINE) / devicePixelRatio };
}

let measured: CanvasRenderingContext2D | null = null;

function mono(): string {
  return getComputedStyle(document.documentElement).getPropertyValue("--mono").trim();
}
