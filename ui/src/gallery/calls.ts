/** Fixtures: calls in every state. Never loaded by the page. */
import type { CallDetail, Claim, CommandPreview, DiffPreview, InputPreview, Receipt, Status, Suggestion } from "../api/types.ts";
import type { TrackedApproval, TrackedCall, TrackedTerminal } from "../state/model.ts";

const WORKSPACE = "/home/ada/api-server";

export function call(status: Status, facts: Partial<TrackedCall> = {}): TrackedCall {
  return {
    id: `c-${status}-${facts.title ?? ""}`.replace(/\W+/g, "-").slice(0, 40),
    seq: 1,
    tool: "execute_command",
    title: "pytest -x tests/",
    status,
    caller: { door: "stdio", client: "claude-code", key: "k", workspace: WORKSPACE, thread: null, operation: null },
    assurance: "bound",
    thread: null,
    started_at: 0,
    elapsed_ms: 113_210,
    asked_at: 0,
    reviewed_at: null,
    answered_at: 109_000,
    answered_by: "a person on the page",
    edited: false,
    ran_at: status === "waiting" || status === "denied" ? null : 109_000,
    ended_at: status === "waiting" || status === "running" ? null : 113_210,
    waited_ms: 109_000,
    ran_ms: status === "waiting" || status === "denied" ? 0 : 4210,
    exit_code: status === "done" ? 0 : null,
    signal: null,
    handed_back: false,
    client_gone: false,
    stopped: status !== "waiting" && status !== "running",
    allowed_by: "approval a1",
    by: "a person on the page",
    message: "",
    terminal_id: null,
    approval_id: null,
    usual: null,
    since: performance.now() - 42_000 - (status === "running" ? 109_000 : 0),
    touched: 0,
    ...facts,
  };
}

export const command: CommandPreview = {
  kind: "command",
  command: "rm -rf build && npm publish --access public",
  cwd: WORKSPACE,
  program: "/usr/bin/bash",
  environment: ["NPM_TOKEN"],
};

export const input: InputPreview = {
  kind: "input",
  terminal: "x2",
  name: "dev server",
  text: "rs\x03npm test -- --watch\n",
  keys: ["enter"],
  cwd: WORKSPACE,
  foreground: "node",
  owner: "claude-code",
};

export function begun(id: string): TrackedTerminal {
  return { id, name: "pytest", of: "command", owner: { person: false, name: "claude-code", workspace: WORKSPACE }, call_id: null, asks: null, taken: null, since: performance.now() - 20_000, touched: 0 };
}

export const disguised: CommandPreview = { ...command, command: "ls \u202e# gr- mr\u200b\nrm -rf \u00a0~/", environment: [] };

export const change: DiffPreview = {
  kind: "diff",
  path: `${WORKSPACE}/src/auth.py`,
  added: 6,
  removed: 3,
  creates: false,
  deletes: false,
  notes: ["CRLF line endings are kept."],
  diff: `--- a/src/auth.py
+++ b/src/auth.py
@@ -12,9 +12,12 @@ def login(user: User, password: str) -> Session:
     record = users.find(user.name)
     if record is None:
         raise Unknown(user.name)
-    if record.password == password:
-        return Session(user)
-    raise Refused(user.name)
+    if not verify(record.hash, password):
+        throttle.note(user.name)
+        raise Refused(user.name)
+    if needs_rehash(record.hash):
+        users.store(user.name, hashed(password))
+    return Session(user, expires=now() + timedelta(hours=12))
 
 
 def logout(session: Session) -> None:
`,
};

export function claim(action: Claim["action"], resource: string, facts: Partial<Claim> = {}): Claim {
  return { action, resource, inside: true, protected: false, words: action === "run" ? resource.split(" ") : [], opaque: "", calm: false, reads: false, server: "", arguments: [], ...facts };
}

export function suggested(command: string, claims: number[], facts: Partial<Suggestion> = {}): NonNullable<TrackedApproval["suggestions"]>[number] {
  const rule = { effect: "allow" as const, tool: "execute_command", command, scope: "project" as const, workspace: WORKSPACE, match: [], not_match: [], note: "" };
  return { rule, words: `\`${command} …\``, claims, answers: 0, ...facts } as NonNullable<TrackedApproval["suggestions"]>[number];
}

export function approval(facts: Partial<TrackedApproval> = {}): TrackedApproval {
  return {
    id: "a1",
    call_id: "c1",
    tool: "execute_command",
    title: "rm -rf build && npm publish",
    description: "Runs a shell line in a terminal of its own, where a person can watch it.\n\nMore words for agents.",
    status: "open",
    risk: "high",
    reasons: ["deletes files", "publishes"],
    risks: facts.reasons ? [] : [
      { level: "high", reasons: ["deletes files"] },
      { level: "high", reasons: ["publishes", "reaches outside the workspace"] },
      { level: "high", reasons: ["writes a protected place", "writes outside the workspace"] },
    ],
    why: "No rule covers this command, and your default policy is to ask.",
    digest: "0".repeat(64),
    asked_at: 0,
    elapsed_ms: 0,
    caller: call("waiting").caller,
    client_gone: false,
    input: { command: command.command },
    claims: [
      claim("run", "rm -rf build"),
      claim("run", "npm publish --access public", { inside: false }),
      claim("write", "/home/ada/.npmrc", { inside: false, protected: true }),
    ],
    verdicts: [
      { claim: 0, effect: "ask", rule: "default policy", why: "No rule covers `rm -rf build`, and your default policy is to ask." },
      { claim: 1, effect: "ask", rule: "r4c1d2e3f4a", why: "Your rule asks before anything is published." },
      { claim: 2, effect: "ask", rule: "protected place", why: "It holds credentials: never allowed without a person." },
    ],
    reviewable: false,
    can_edit: true,
    why_not_edit: "",
    trusted: true,
    suggestions: [
      suggested("npm publish", [1]),
    ],
    usual: { median_ms: 40_000, p95_ms: 70_000, of: 12 },
    edited: false,
    preview: command,
    reason: "",
    by: null,
    since: performance.now() - 42_000,
    ...facts,
  };
}

export const receipt: Receipt = {
  ended_by: "a person on the page",
  stopped: true,
  signals: [
    { signal: "SIGHUP", after_ms: 0 },
    { signal: "SIGTERM", after_ms: 0 },
    { signal: "SIGKILL", after_ms: 2003 },
  ],
  processes_stopped: [
    { pid: 4242, name: "bash" },
    { pid: 4243, name: "node" },
  ],
  processes_left: [],
  bytes_kept: 14_200,
  files_changed: [],
};

export function detail(of: TrackedCall, facts: Partial<CallDetail> = {}): CallDetail {
  const { since: _, touched: __, input: ___, ...view } = of;
  return {
    ...view,
    input: { command: of.title, wait_seconds: 45 },
    claims: [claim("run", of.title)],
    asked: null,
    files: [],
    preview: { ...command, command: of.title, environment: [] },
    result: null,
    receipt: null,
    completion: null,
    terminal_running: false,
    ...facts,
  };
}
