import assert from "node:assert/strict";
import { test } from "node:test";

import { connectCommand, programOf } from "./connectCommands.ts";

test("the commands call Handrail as it is called on this machine", () => {
  const line = "claude mcp add handrail -- env HANDRAIL_HOME=/tmp/h /opt/bin/handrail mcp";
  assert.equal(programOf(line), "env HANDRAIL_HOME=/tmp/h /opt/bin/handrail");
  assert.equal(connectCommand("claude", line), "env HANDRAIL_HOME=/tmp/h /opt/bin/handrail connect claude");
  assert.equal(connectCommand("other", "claude mcp add handrail -- handrail mcp"), "handrail mcp");
});
