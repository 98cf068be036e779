import assert from "node:assert/strict";
import { test } from "node:test";

import { argumentTexts, askedArguments } from "./arguments.ts";

test("the arguments of another server's tool are shown whole, as they were sent", () => {
  const input = { repo: "a/b", body: "two\nlines", labels: ["x"], draft: false };
  const asked = askedArguments({ tool: "github__create_issue", assurance: "forwarded" }, input, true);
  assert.deepEqual(asked, input);
  assert.deepEqual(argumentTexts(input).map(({ text }) => text), ["a/b", "two\nlines", '[\n "x"\n]', "false"]);
  assert.equal(askedArguments({ tool: "git__git_init", assurance: "forwarded" }, {}, false), null);
});

test("the arguments of a client's own tool are shown where no preview shows them", () => {
  const input = { tool: "WebFetch", input: { url: "https://example.org", prompt: "x" } };
  assert.deepEqual(askedArguments({ tool: "client_work", assurance: "advisory" }, input, false), input.input);
  assert.deepEqual(askedArguments({ tool: "agent_work", assurance: "advisory" }, { title: "Fetch", input: { url: "x" } }, false), { url: "x" });
  assert.equal(askedArguments({ tool: "client_work", assurance: "advisory" }, input, true), null);
  assert.equal(askedArguments({ tool: "write_file", assurance: "bound" }, { path: "x" }, false), null);
});
