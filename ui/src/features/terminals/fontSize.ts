/** The font size at which a terminal fits its container, and the grid that fits at the default size; pure. */
export interface Extent {
  readonly width: number;
  readonly height: number;
}

export const FONT_SIZE = 13;
/** Below this size the container scrolls instead. */
export const MIN_FONT_SIZE = 8;
const STEP = 0.5;

/** Cell size at a font size. */
export type CellSize = (letter: number) => Extent;

/** The largest font size at which the grid fits. */
export function fittingFontSize(room: Extent, [cols, rows]: readonly [number, number], cell: CellSize, least = MIN_FONT_SIZE): number {
  for (let letter = Math.max(FONT_SIZE, least); letter > least; letter -= STEP) {
    const { width, height } = cell(letter);
    if (cols * width <= room.width && rows * height <= room.height) return letter;
  }
  return least;
}

/** Columns and rows that fit at a font size. */
export function gridSize(room: Extent, cell: CellSize, letter = FONT_SIZE): [number, number] {
  const { width, height } = cell(letter);
  return [bounded(Math.floor(room.width / width), 20, 400), bounded(Math.floor(room.height / height), 5, 200)];
}

function bounded(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
