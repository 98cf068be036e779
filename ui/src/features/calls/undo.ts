/** Icons and words for the actions of an undo on a file; pure. */
import type { UndoFile, UndoView } from "../../api/types.ts";
import type { Sign, Tone } from "../../lib/callText.ts";

interface Does {
  readonly sign: Sign;
  readonly tone: Tone;
  readonly word: string;
  readonly past: string;
}

export const UNDO_ACTIONS: Record<UndoFile["does"], Does> = {
  restore: { sign: "withdrawn", tone: "teal", word: "restore", past: "restored" },
  recreate: { sign: "withdrawn", tone: "teal", word: "bring back", past: "brought back" },
  remove: { sign: "cancelled", tone: "amber", word: "remove", past: "removed" },
  nothing: { sign: "done", tone: "grey", word: "as it was", past: "as it was" },
  refuse: { sign: "denied", tone: "red", word: "left alone", past: "left alone" },
};

/** The files that the undo would change. */
export function undoableFiles({ files }: Pick<UndoView, "files">): UndoFile[] {
  return files.filter(({ does }) => does === "restore" || does === "recreate" || does === "remove");
}
