/**
 * Escape sequences that output may not use: terminal queries, clipboard writes, colour changes, images.
 *
 * They are parsed and dropped, so that replayed or hostile output never injects a reply into the program's input.
 * This is the first of two barriers; the second lets only user events type (userInput.ts).
 */
import type { IDisposable, IFunctionIdentifier, IParser } from "@xterm/xterm";

/** Queries: device, modes, cursor, window, keyboard. */
const CSI: readonly IFunctionIdentifier[] = [
  { final: "c" }, // DA1
  { prefix: ">", final: "c" }, // DA2
  { prefix: "=", final: "c" }, // DA3
  { final: "n" }, // DSR, CPR
  { prefix: "?", final: "n" }, // the same, private
  { prefix: ">", final: "n" },
  { intermediates: "$", final: "p" }, // DECRQM
  { prefix: "?", intermediates: "$", final: "p" },
  { prefix: ">", final: "q" }, // XTVERSION
  { final: "t" }, // window operations
  { prefix: ">", final: "t" },
  { final: "x" }, // DECREQTPARM
  { prefix: "?", final: "u" }, // keyboard protocols
  { prefix: ">", final: "u" },
  { prefix: "<", final: "u" },
  { prefix: "=", final: "u" },
  { prefix: "?", final: "m" }, // XTQMODKEYS
  { prefix: ">", final: "m" },
  { prefix: "?", final: "S" }, // graphics attributes
  { intermediates: "*", final: "y" }, // DECRQCRA: reads the screen
  { intermediates: "$", final: "w" }, // DECRQPSR
  { intermediates: '"', final: "v" }, // DECRQDE
  { intermediates: "&", final: "u" }, // DECRQUPSS
];

/** Settings and capabilities, macros, images. */
const DCS: readonly IFunctionIdentifier[] = [
  { intermediates: "$", final: "q" }, // DECRQSS
  { intermediates: "+", final: "q" }, // XTGETTCAP
  { intermediates: "+", final: "p" },
  { final: "q" }, // sixel
];

/** Properties, colours, fonts, pointers, notifications, clipboard, files, images. */
const OSC: readonly number[] = [
  3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 22, 50, 51, 52, 60, 61, 99, 104, 105, 110, 111, 112, 113, 114, 115, 116, 117,
  118, 119, 176, 440, 555, 666, 777, 1337, 5113, 5522,
];

/** Modes in which the terminal sends reports: mouse, focus, colour scheme, size, raw keys. */
const SPEAKING = new Set([9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2031, 2048, 9001]);

export function blockSequences(parser: IParser): IDisposable[] {
  const drop = (): boolean => true;
  return [
    ...CSI.map((id) => parser.registerCsiHandler(id, drop)),
    ...DCS.map((id) => parser.registerDcsHandler(id, drop)),
    ...OSC.map((id) => parser.registerOscHandler(id, drop)),
    parser.registerEscHandler({ final: "Z" }, drop), // DECID
    parser.registerCsiHandler({ prefix: "?", final: "h" }, (modes) => modes.every((mode) => typeof mode === "number" && SPEAKING.has(mode))),
  ];
}
