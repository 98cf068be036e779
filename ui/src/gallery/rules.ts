/** Fixtures: rules, folders, tests and undos. Never loaded by the page. */
import type { Effect, FolderView, Rule, RulesView, RuleView, TestView, UndoView } from "../api/types.ts";
import { change, suggested } from "./calls.ts";

export const NOW = Date.now();
const HOUR = 3_600_000;
const WORKSPACE = "/home/ada/api-server";

function rule(id: string, effect: Effect, words: string, facts: Partial<Rule> = {}, about: Partial<RuleView> = {}): RuleView {
  const builtin = about.builtin ?? false;
  return {
    rule: {
      id, effect, disabled: false, rank: 0, tool: null, command: null, path: null, host: null, server: null, arguments: [], agent: null, scope: "user", workspace: null, session: null,
      expires_at: null, source: "", note: "", match: [], not_match: [], ...facts,
    },
    words, builtin, removable: !builtin && !facts.source?.includes(".toml"), in_force: true, says: "", hits: 0, last_used_at: null, last_call: null,
    added_at: builtin ? null : NOW - 50 * HOUR, added_by: builtin ? null : "a person on the page", ...about,
  };
}

const used = (hits: number, ago: number): Partial<RuleView> => ({ hits, last_used_at: NOW - ago, last_call: "c1" });
const BUILTIN = { builtin: true } as const;

export const folders: FolderView[] = [
  { folder: WORKSPACE, trusted: true, trusted_at: NOW - 90 * HOUR, by: "a person on the page", config: "ab".repeat(32), problem: "", exists: true },
  { folder: "/home/ada/downloads/somebody-elses-project", trusted: false, trusted_at: null, by: null, config: "cd".repeat(32), problem: "Its `.handrail/config.toml` changed since it was trusted.", exists: true },
  { folder: "/home/ada/notes", trusted: false, trusted_at: null, by: null, config: null, problem: "", exists: true },
];

export const book: RulesView = {
  rules: [
    rule("r9f8e7d6c5b", "deny", "deny `git push --force`", { scope: "user", source: "config.toml:14", note: "never rewrite history" }, used(3, 5 * HOUR)),
    rule("protected place", "ask", "protected places: credentials, start-up files, Handrail itself", {}, { ...BUILTIN, ...used(12, HOUR) }),
    rule("not understood", "ask", "what is not fully understood", {}, { ...BUILTIN, ...used(41, HOUR / 2) }),
    rule("no workspace", "ask", "callers without a folder", {}, BUILTIN),
    rule("r4c1d2e3f4a", "ask", "ask before `npm publish …`", { scope: "project", workspace: WORKSPACE, source: ".handrail/config.toml:3" }, { in_force: false, says: "Its folder is not trusted." }),
    rule("r0a1b2c3d4e", "allow", "allow `git diff …`", { scope: "project", workspace: WORKSPACE, source: "approval a17" }, used(214, 60_000)),
    rule("r1b2c3d4e5f", "allow", "allow `npm run test:* …`", { scope: "session", workspace: WORKSPACE, session: "k", expires_at: NOW + 6 * HOUR, source: "approval a19" }, used(1, 9 * HOUR)),
    rule("r2c3d4e5f60", "allow", "allow writes to `docs/**` with a rather long glob that names many a folder and goes on", { agent: "claude*" }),
    rule("reads in the workspace", "allow", "reads in the workspace", {}, { ...BUILTIN, ...used(1840, 4000) }),
    rule("own record", "allow", "an agent's own record", {}, BUILTIN),
    rule("untrusted folder", "ask", "folders that are not trusted", {}, { ...BUILTIN, ...used(7, 3 * HOUR) }),
    rule("default policy", "ask", "everything else", {}, { ...BUILTIN, ...used(57, HOUR) }),
  ],
  suggestions: [
    suggested("git status", [], { words: "allow `git status …` in api-server", answers: 9 }),
    suggested("curl", [], { words: "deny `curl …`", answers: 4 }),
  ],
  folders,
  default_policy: "ask",
  human_in_the_loop: true,
};

export const bare: RulesView = { ...book, rules: book.rules.filter(({ builtin }) => builtin), suggestions: [], folders: [] };

export const test: TestView = {
  effect: "ask",
  rule: "default policy",
  why: "No rule covers `git push -f`, and your default policy is to ask.",
  parts: [
    { text: "git diff", action: "run", effect: "allow", rule: "r0a1b2c3d4e", why: "your rule", opaque: "", inside: true, protected: false, risk: "medium", reasons: ["runs git"] },
    { text: "git push -f", action: "run", effect: "ask", rule: "default policy", why: "no rule covers it", opaque: "", inside: true, protected: false, risk: "high", reasons: ["rewrites history", "publishes to a remote"] },
  ],
  chain: [
    { name: "r9f8e7d6c5b", words: "deny `git push --force`", effect: null, parts: [], decides: false },
    { name: "not understood", words: "what is not fully understood", effect: null, parts: [], decides: false },
    { name: "r0a1b2c3d4e", words: "allow `git diff …`", effect: "allow", parts: [0], decides: false },
    { name: "default policy", words: "everything else", effect: "ask", parts: [1], decides: true },
  ],
  risk: "high",
  reasons: ["rewrites history", "publishes to a remote"],
  trusted: true,
};

export const undo: UndoView = {
  what: "c1",
  of: "call",
  title: "Edit src/auth.py, by claude-code",
  digest: "2".repeat(64),
  files: [
    { path: "src/auth.py", does: "restore", says: "", diff: change.diff, added: 3, removed: 6 },
    { path: "src/throttle.py", does: "remove", says: "It was created by this call.", diff: "", added: 0, removed: 0 },
    { path: "README.md", does: "refuse", says: "It was changed since, by call c12: undo that one first.", diff: "", added: 0, removed: 0 },
  ],
  not_covered: ["What the command `npm install` did.", "Files that no tool of Handrail changed."],
  undo: null,
};
