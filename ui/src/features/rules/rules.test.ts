import assert from "node:assert/strict";
import { test } from "node:test";

import type { Claim, Effect, Rule, RuleView, Suggestion, UndoFile } from "../../api/types.ts";
import { agentComment, callRemark, callStatus, decidingRule, firstSentence } from "../../lib/callText.ts";
import { typicalText, urgency } from "../../lib/duration.ts";
import { changedFields, fieldRows, fieldsToInput, inputToFields } from "../../lib/inputFields.ts";
import { agoText, inText } from "../../lib/relativeTime.ts";
import { undoableFiles } from "../calls/undo.ts";
import { argumentText, readArguments, decisionText, groupRules, isUnused, moveTarget, proposalText, ruleBody, ruleHref, rulePattern, ruleSubject, suggestionLines, uncoveredClaims, withPattern } from "./ruleText.ts";

const HOUR = 3_600_000;

function rule(facts: Partial<Rule> = {}): Rule {
  return {
    id: "r1", effect: "allow", tool: null, command: "git push", path: null, host: null, server: null, arguments: [], agent: null, scope: "project", workspace: "/home/me/api",
    session: null, expires_at: null, source: "approval a1", note: "", match: [], not_match: [], disabled: false, rank: 0, ...facts,
  };
}

function view(id: string, effect: Effect, builtin = false, facts: Partial<RuleView> = {}): RuleView {
  return {
    rule: rule({ id, effect }), words: id, builtin, removable: !builtin, in_force: true, says: "", hits: 0, last_used_at: null, last_call: null,
    added_at: 0, added_by: "page", ...facts,
  };
}

function claim(resource: string, opaque = ""): Claim {
  return { action: "run", resource, inside: true, protected: false, words: [], opaque, calm: false, reads: false, server: "", arguments: [] };
}

function suggestion(command: string, ...claims: number[]): Suggestion {
  return { rule: { command }, words: command, claims, answers: 0 };
}

test("a rule moves among those of its effect and scope, and a disabled one is not brought back enabled", () => {
  const user = { rule: rule({ id: "u", effect: "allow", scope: "user" }) };
  const shown = [view("a", "allow"), view("b", "allow"), view("c", "allow"), view("u", "allow", false, user), view("file", "allow", false, { removable: false })];
  const [a, b, c, u, file] = shown as [RuleView, RuleView, RuleView, RuleView, RuleView];
  assert.deepEqual([moveTarget(shown, b, -1), moveTarget(shown, b, 1)], [{ before: "a" }, { before: null }]);
  assert.deepEqual([moveTarget(shown, a, -1), moveTarget(shown, a, 1)], [undefined, { before: "c" }]);
  assert.deepEqual([moveTarget(shown, c, 1), moveTarget(shown, u, -1), moveTarget(shown, file, -1)], [undefined, undefined, undefined]);
  assert.equal(ruleBody(rule({ disabled: true }), 0), null);
  const { disabled: _, rank: __, ...plain } = { disabled: false, rank: 3, ...ruleBody(rule({ rank: 3 }), 0) };
  assert.deepEqual(plain, ruleBody(rule(), 0));
});

test("a rule's pattern is changed without losing how far it reaches", () => {
  const made = withPattern({ command: "git push", scope: "user", expires_in: 60 }, "command", "git push origin");
  assert.deepEqual(made, { command: "git push origin", scope: "user", expires_in: 60 });
  assert.deepEqual(withPattern(made, "path", "src/**"), { path: "src/**", scope: "user", expires_in: 60 });
  assert.deepEqual(withPattern(made, "tool", "x"), { scope: "user", expires_in: 60 });
  assert.equal(rulePattern({ host: "*.example.org" }), "*.example.org");
  assert.equal(ruleSubject({ tool: "read_file" }), "tool");
});

test("a revoked rule comes back with the time it had left, one of a session or that is over does not", () => {
  const back = ruleBody(rule({ expires_at: 10_000 }), 4000);
  assert.equal(back?.expires_in, 6);
  assert.equal(back?.command, "git push");
  assert.ok(back && !("id" in back) && !("source" in back));
  assert.equal(ruleBody(rule({ scope: "session", session: "k" }), 0), null);
  assert.equal(ruleBody(rule({ expires_at: 10 }), 4000), null);
});

test("what a proposed rule would have done is said in one line", () => {
  const seen = { problem: "", words: "", examples: [], calls: 200, matches: 14, prompts: 57, decided: 41 };
  assert.equal(proposalText(seen), "matches 14 of your last 200 calls · would have decided 41 of your last 57 questions");
  assert.equal(proposalText({ ...seen, prompts: 0 }), "matches 14 of your last 200 calls");
  assert.equal(proposalText({ ...seen, calls: 0, prompts: 0 }), "there are no calls yet to judge it by");
});

test("each part gets one line, other suggestions for it stand beside, and what no rule decides is named", () => {
  const found = suggestionLines([suggestion("npm run test:unit", 0), suggestion("npm run test:*", 0), suggestion("git push", 1)]);
  assert.deepEqual(found.map((line) => [line.suggestion.words, line.others.map((other) => other.words)]), [["npm run test:unit", ["npm run test:*"]], ["git push", []]]);
  const claims = [claim("npm run test:unit"), claim("git push"), claim("$(date)", "a substitution"), claim("ls")];
  const verdicts = claims.map((_, at) => ({ claim: at, effect: at === 3 ? ("allow" as const) : ("ask" as const), rule: "x", why: "because" }));
  assert.deepEqual(uncoveredClaims(claims, verdicts, found), [{ claim: claims[2], why: "a substitution" }]);
});

test("rules stand in the order of evaluation, floors apart from defaults, numbered through", () => {
  const groups = groupRules([
    view("d", "deny"), view("floor", "ask", true), view("ask", "ask"), view("a1", "allow"), view("a2", "allow"), view("reads", "allow", true), view("default", "ask", true),
  ]);
  assert.deepEqual(groups.map(({ title, rules }) => [title, rules.map(({ number }) => number)]), [
    ["Deny", [1]], ["Built-in limits", [2]], ["Ask", [3]], ["Allow", [4, 5]], ["Built-in defaults", [6, 7]],
  ]);
});

test("a rule is unused when it never decided, or not for a month; a new or a built-in one is not", () => {
  const now = 100 * 24 * HOUR;
  assert.ok(isUnused(view("r", "allow", false, { added_at: now - 48 * HOUR }), now));
  assert.ok(!isUnused(view("r", "allow", false, { added_at: now - HOUR }), now));
  assert.ok(isUnused(view("r", "allow", false, { hits: 3, last_used_at: now - 31 * 24 * HOUR }), now));
  assert.ok(!isUnused(view("r", "allow", false, { hits: 3, last_used_at: now - HOUR }), now));
  assert.ok(!isUnused(view("floor", "ask", true), now));
});

test("a test reads as the decision and the rule's number", () => {
  assert.equal(decisionText({ effect: "ask", rule: "r4" }, new Map([["r4", 4]])), "ask, by rule 4");
  assert.equal(decisionText({ effect: "ask", rule: "default policy" }, new Map()), "ask, by default policy");
  assert.equal(ruleHref("reads in the workspace"), "/rules#reads%20in%20the%20workspace");
});

test("an input is edited field by field, what runs first, and comes back as it was", () => {
  const input = { wait_seconds: 45, env: { A: "1" }, command: "ls\n-la", cwd: null };
  const fields = inputToFields(input);
  assert.deepEqual(fields.map(({ name, json }) => [name, json]), [["command", false], ["wait_seconds", true], ["env", true], ["cwd", true]]);
  assert.deepEqual(fieldsToInput(fields), { input, problems: new Map() });
  const broken = fieldsToInput(fields.map((field) => (field.name === "env" ? { ...field, text: "{" } : field)));
  assert.deepEqual([...broken.problems.keys()], ["env"]);
});

test("what was changed is told field by field, as asked and as it ran", () => {
  assert.deepEqual(changedFields({ command: "rm -rf /", wait_seconds: 1 }, { command: "ls", wait_seconds: 1, cwd: "x" }), [
    { name: "command", asked: "rm -rf /", ran: "ls" },
    { name: "cwd", asked: null, ran: "x" },
  ]);
  assert.equal(fieldRows("one\ntwo"), 2);
  assert.equal(fieldRows("x\n".repeat(100)), 12);
});

test("a call is long by the clock, or by what such calls take", () => {
  assert.equal(urgency(61_000), "long");
  assert.equal(urgency(301_000), "too-long");
  assert.equal(urgency(20_000, 5000), "long");
  assert.equal(urgency(20_000, 10_000), "calm");
  assert.equal(urgency(2000, 10), "calm", "below a few seconds nothing is unusual");
  assert.equal(typicalText(40_000), "usual 0:40");
});

test("ages and ends are told in few words", () => {
  assert.deepEqual([agoText(20_000), agoText(5 * 60_000), agoText(3 * HOUR), agoText(300 * 24 * HOUR)], ["just now", "5 min ago", "3 h ago", "300 d ago"]);
  assert.deepEqual([inText(-1), inText(10_000), inText(6 * HOUR)], ["expired", "in 1 min", "in 6 h"]);
});

test("denied, expired and withdrawn are three different words", () => {
  const call = { status: "failed", allowed_by: null, by: null, message: "" } as unknown as Parameters<typeof callStatus>[0];
  assert.equal(callStatus(call, null, "expired").word, "expired");
  const late = { ...call, message: "Expired: nobody answered within 10 min. Nothing was run." };
  assert.equal(callStatus(late).word, "expired", "also when only the record of the call is at hand");
  assert.equal(callRemark(late), ": nobody answered within 10 min. Nothing was run.");
  assert.equal(callStatus({ ...call, status: "running", handed_back: true, caller: { door: "stdio", client: "codex", key: "k", workspace: null } }).word, "running", "also when its agent waits no more");
  const taken = { ...call, status: "cancelled", by: "client", asked_at: 1, answered_at: null, stopped: true } as const;
  assert.equal(callStatus(taken).word, "withdrawn");
  assert.equal(callStatus({ ...taken, by: "a person on the page" }).word, "cancelled", "a person did that");
  assert.equal(callStatus({ ...taken, answered_at: 2 }).word, "cancelled", "it was answered, and ran");
  assert.equal(callStatus({ ...taken, asked_at: null }).word, "cancelled");
  assert.equal(callStatus({ ...call, status: "denied", by: "a person on the page" }, null, "denied").word, "denied");
  assert.equal(callStatus({ ...call, status: "denied", by: "rule r1" }).word, "denied");
  const unasked = { status: "done", allowed_by: "nobody", by: "agent vibe", message: "" } as unknown as Parameters<typeof callStatus>[0];
  assert.equal(callStatus(unasked).word, "done, unasked");
  assert.equal(callStatus({ ...unasked, status: "failed" }).word, "failed, unasked");
  assert.equal(decidingRule({ status: "denied", allowed_by: null, by: "rule r1" }), "r1");
  assert.equal(decidingRule({ status: "done", allowed_by: "approval a1", by: null }), null);
});

test("what the agent says about itself is told apart from what will run", () => {
  assert.equal(agentComment({ command: "rm -rf /", description: " Only lists files. ", why: 3 }), "Only lists files.");
  assert.equal(agentComment({ command: "ls" }), "");
});

test("a tool is described to a person in one sentence", () => {
  assert.equal(firstSentence("Replace one passage of a text file. old_string must occur once."), "Replace one passage of a text file.");
  assert.equal(firstSentence("No stop"), "No stop");
});

test("an undo counts only the files that it would touch", () => {
  const file = (path: string, does: UndoFile["does"]): UndoFile => ({ path, does, says: "", diff: "", added: 0, removed: 0 });
  const files = [file("a", "restore"), file("b", "refuse"), file("c", "remove"), file("d", "nothing"), file("e", "recreate")];
  assert.deepEqual(undoableFiles({ files }).map(({ path }) => path), ["a", "c", "e"]);
});

test("arguments of a server's tool are read line by line, and come back as they were", () => {
  const given = { repo: "acme/*", title: "a = b", draft: "**" };
  assert.deepEqual(readArguments("repo = acme/*\n\ntitle=a = b\ndraft"), given);
  assert.deepEqual(readArguments(argumentText(given)), given);
});
