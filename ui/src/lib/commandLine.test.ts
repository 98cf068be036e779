import assert from "node:assert/strict";
import { test } from "node:test";

import { splitWords } from "./commandLine.ts";

test("a command is split as a shell would", () => {
  assert.deepEqual(splitWords(`uvx mcp-server-git --repository "my repo" 'a b' c\\ d`), ["uvx", "mcp-server-git", "--repository", "my repo", "a b", "c d"]);
  assert.deepEqual(splitWords("  "), []);
});
