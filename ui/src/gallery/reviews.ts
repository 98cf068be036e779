/** Fixtures: proposed files in every state. Never loaded by the page. */
import type { DiffPreview, EditView, ProposalView } from "../api/types.ts";
import type { TrackedApproval } from "../state/model.ts";
import { approval } from "./calls.ts";

const FOLDER = "/home/ada/api-server";

const AUTH = `"""Who may come in."""

import users
from session import Session


class Refused(Exception):
    """The name or the password is wrong."""


def login(name: str, password: str) -> Session:
    record = users.find(name)
    if record is None:
        raise Refused(name)
    if record.password == password:
        return Session(name)
    raise Refused(name)


def logout(session: Session) -> None:
    session.end()


def everyone() -> list[str]:
    # Sorted, because people read it.
    return sorted(user.name for user in users.all())


def rename(old: str, new: str) -> None:
    users.find(old).name = new
`;

const AFTER = AUTH.replace("import users\nfrom session import Session\n", "import users\nfrom hashing import needs_rehash, verify\nfrom session import Session\n")
  .replace(
    "    if record.password == password:\n        return Session(name)\n    raise Refused(name)\n",
    "    if not verify(record.hash, password):\n        raise Refused(name)\n    if needs_rehash(record.hash):\n        users.store(name, password)\n    return Session(name, hours=12)\n",
  )
  .replace("    users.find(old).name = new\n", "    if users.find(new):\n        raise ValueError(f\"{new} is taken\")\n    users.find(old).name = new\n");

const DISGUISED = AUTH.replace("    session.end()\n", "    session.end() \u202e # nothing to see\u200b here\r\n    grant\u00a0= 1\n");
const LONG = Array.from({ length: 4000 }, (_, at) => `export const value${at} = { id: ${at}, name: "name ${at}", tags: ["a", "b"] };\n`).join("");
const LONGER = LONG.replaceAll(/value(\d*)5 = /g, "renamed$15 = ");

interface Shown {
  readonly name: string;
  readonly proposal: ProposalView;
  readonly question: TrackedApproval;
  readonly effect?: EditView["effect"];
}

let counter = 0;

function shown(name: string, path: string, before: string | null, after: string | null, facts: Partial<ProposalView> = {}, preview: Partial<DiffPreview> = {}, question: Partial<TrackedApproval> = {}): Shown {
  const diff: DiffPreview = { kind: "diff", path: `${FOLDER}/${path}`, added: 9, removed: 3, creates: before === null, deletes: after === null, notes: [], diff: "", ...preview };
  const proposal = { path: `${FOLDER}/${path}`, before, after, changed: null, difference: "", ...facts };
  return { name, proposal, question: approval({ id: `review-${++counter}`, tool: "write_file", title: `Write ${path}`, risk: "medium", reasons: ["changes a file in the workspace"], preview: diff, ...question }) };
}

const DIFFERENCE = '--- a/src/auth.py\n+++ b/src/auth.py\n@@ -3,3 +3,4 @@\n import users\n+import logging\n from session import Session\n \n';

export const reviews: readonly Shown[] = [
  shown("review: three hunks", "src/auth.py", AUTH, AFTER, {}, { notes: ["Line endings are CRLF, as before.", "The file is executable and stays so (mode 755)."] }),
  shown("review: chosen, edited, spoken about", "src/auth.py", AUTH, AFTER),
  shown("review: everything rejected", "src/auth.py", AUTH, AFTER),
  shown("review: changed on disk", "src/auth.py", AUTH, AFTER, { changed: "1 line was added and none removed since.", difference: DIFFERENCE }),
  shown("review: new file", "docs/notes/plan.md", null, "# Plan\n\n1. **Hash** passwords, see `src/auth.py`\n2. Throttle\n\nNo newline at the end", {}, { notes: ["Creates the directory /home/ada/api-server/docs/notes."] }),
  shown("review: deletion", "src/old.ts", 'export function old(): string {\n  return "gone soon"; // really\n}\n', null, {}, {}, { risk: "high", reasons: ["deletes a file"] }),
  shown("review: disguised", "src/auth.py", AUTH, DISGUISED),
  shown("review: not UTF-8", "menu.txt", "caf\uefe9\ntea\n", "caf\uefe9 cr\uefe8me\ntea\n", {}, { notes: ["The file is not UTF-8: its other bytes stay as they are, and are shown as \\xNN."] }),
  shown("review: refused by a rule", "src/auth.py", AUTH, AFTER),
  shown("review: large", "src/generated.ts", LONG, LONGER, {}, { added: 400, removed: 400 }),
  shown("review: large new file", "src/generated.ts", null, LONG, {}, { added: 4000, removed: 0 }),
  shown("review: one endless line", "dist/app.js", "let a=1;".repeat(20_000), `${"let a=1;".repeat(20_000)}let b=2;`),
];
