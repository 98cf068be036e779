/** How large a terminal's letters can be, and how many of them a room holds; pure. */
export interface Extent {
  readonly width: number;
  readonly height: number;
}

export const LETTER = 13;
/** Smaller than this nobody reads: from here on the room scrolls. */
export const SMALLEST = 8;
const STEP = 0.5;

/** How large a cell is for letters of this size. */
export type Cell = (letter: number) => Extent;

/** The largest letters at which so many columns and rows fit. */
export function letterFor(room: Extent, [cols, rows]: readonly [number, number], cell: Cell): number {
  for (let letter = LETTER; letter > SMALLEST; letter -= STEP) {
    const { width, height } = cell(letter);
    if (cols * width <= room.width && rows * height <= room.height) return letter;
  }
  return SMALLEST;
}

/** Columns and rows that a room holds at the usual letters. */
export function sizeFor(room: Extent, cell: Cell): [number, number] {
  const { width, height } = cell(LETTER);
  return [bounded(Math.floor(room.width / width), 20, 400), bounded(Math.floor(room.height / height), 5, 200)];
}

function bounded(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
