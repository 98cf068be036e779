/** The columns of the table of calls: which there are, which are shown, and in which order the rows are. Kept in localStorage. */
import type { CallTableQuery } from "../../api/client.ts";

export type Sort = NonNullable<CallTableQuery["sort"]>;

export interface Column {
  readonly key: Sort;
  readonly word: string;
  /** Pixels; the title takes the rest. */
  readonly width: number;
  /** A narrow table leaves out the columns with the highest numbers. */
  readonly rank: number;
}

export const COLUMNS: readonly Column[] = [
  { key: "time", word: "Time", width: 72, rank: 2 },
  { key: "agent", word: "Agent", width: 116, rank: 4 },
  { key: "tool", word: "Tool", width: 128, rank: 6 },
  { key: "title", word: "What", width: 260, rank: 0 },
  { key: "status", word: "Status", width: 150, rank: 1 },
  { key: "waited", word: "Waited", width: 72, rank: 5 },
  { key: "ran", word: "Ran", width: 72, rank: 3 },
  { key: "by", word: "Allowed by", width: 150, rank: 7 },
  { key: "folder", word: "Folder", width: 110, rank: 8 },
];

const HIDDEN = "handrail.calls-hidden";

class ColumnChoice {
  hidden = $state.raw<readonly string[]>(stored());
  sort = $state<Sort>("time");
  ascending = $state(false);

  /** The columns that are chosen and fit. */
  shown(width: number): Column[] {
    const chosen = COLUMNS.filter(({ key }) => !this.hidden.includes(key)).sort((a, b) => a.rank - b.rank);
    let room = width;
    const fitting = chosen.filter(({ width: needed, rank }) => (room -= needed) >= 0 || rank <= 1);
    return COLUMNS.filter((column) => fitting.includes(column));
  }

  toggle(key: Sort): void {
    this.hidden = this.hidden.includes(key) ? this.hidden.filter((one) => one !== key) : [...this.hidden, key];
    try {
      localStorage.setItem(HIDDEN, JSON.stringify(this.hidden));
    } catch {
      // kept in memory only
    }
  }

  /** Sorts by a column: long, late and last first; a second time the other way. Names begin with A. */
  order(key: Sort): void {
    const names = key !== "time" && key !== "waited" && key !== "ran";
    this.ascending = this.sort === key ? !this.ascending : names;
    this.sort = key;
  }
}

function stored(): readonly string[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(HIDDEN) ?? "[]");
    return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export const columnChoice = new ColumnChoice();
