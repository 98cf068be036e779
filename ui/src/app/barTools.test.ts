import assert from "node:assert/strict";
import { test } from "node:test";

import { barTools } from "./barTools.ts";

test("the settings are reached from every bar, also in an editor's sidebar", () => {
  assert.deepEqual(barTools(false, false), ["alerts", "sign-ins", "settings", "theme", "keys"]);
  assert.deepEqual(barTools(false, true), ["alerts", "settings"]);
  assert.deepEqual(barTools(true, false), ["settings", "keys"]);
  assert.deepEqual(barTools(true, true), ["settings"]);
});
