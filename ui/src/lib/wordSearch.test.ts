import assert from "node:assert/strict";
import { test } from "node:test";

import { hasWords, parseWords } from "./wordSearch.ts";

test("words, phrases and -words narrow a list as they do in a search of calls", () => {
  const found = (text: string): string[] => ["git push --force", "git status", "npm publish"].filter((one) => hasWords(one, parseWords(text)));
  assert.deepEqual(found("GIT"), ["git push --force", "git status"]);
  assert.deepEqual(found("git -status"), ["git push --force"]);
  assert.deepEqual(found('"git s"'), ["git status"]);
  assert.deepEqual(found('-"npm publish" i'), ["git push --force", "git status"]);
  assert.deepEqual(found("push --force"), ["git push --force"]);
  assert.deepEqual(found("-f"), ["git push --force"]);
  assert.equal(found("").length, 3);
});

test("keys are told apart from words; a URL is a word", () => {
  assert.deepEqual(parseWords("status:failed git -tool:read https://a.example status:done").keys, ["status", "tool"]);
  assert.deepEqual(parseWords("status:failed git").words, [{ text: "git", negated: false }]);
  assert.deepEqual(parseWords("https://a.example").words, [{ text: "https://a.example", negated: false }]);
});
