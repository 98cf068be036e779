import assert from "node:assert/strict";
import { test } from "node:test";

import type { CallView } from "../../api/types.ts";
import { buildLanes, lastStretch, panned, ticks, union, waitedText, zoomed } from "./waterfall.ts";

const MINUTE = 60_000;

function call(id: string, opened: number, asked: boolean, ran: number | null, ended: number | null): CallView {
  return { id, started_at: opened, asked_at: asked ? opened : null, reviewed_at: null, answered_at: null, ran_at: ran, ended_at: ended, caller: { key: "k" } } as CallView;
}

test("a lane says how long it waited for the person, of the time it was at work", () => {
  const calls = [call("1", 0, true, 10 * MINUTE, 12 * MINUTE), call("2", 5 * MINUTE, true, 14 * MINUTE, 15 * MINUTE), call("3", 16 * MINUTE, false, 16 * MINUTE, 31 * MINUTE), call("4", 600 * MINUTE, false, null, 600 * MINUTE)];
  const [lane] = buildLanes(calls, ({ caller }) => caller.key, 0);
  assert.ok(lane);
  assert.equal(waitedText(lane), "waited for you 14 of 31 minutes");
  assert.deepEqual(lane.bars.map(({ row }) => row), [0, 1, 0, 0]);
  assert.equal(waitedText({ waited: 0, active: 5 }), "");
  assert.equal(waitedText({ waited: 4000, active: 9000 }), "waited for you 4 of 9 seconds");
});

test("a call that only waits for another one is no work", () => {
  const poll = { ...call("2", 0, false, 0, 90 * MINUTE), allowed_by: "rule own record" };
  const calls = [call("1", 0, true, 2, 2 * MINUTE), poll];
  assert.deepEqual(buildLanes(calls, () => "k", 0)[0]?.bars.map((bar) => bar.call.id), ["1"]);
  assert.ok(lastStretch(calls, 0).to < 3 * MINUTE);
});

test("an open call ends now, and one that never ran has only waited", () => {
  const [lane] = buildLanes([call("1", 10, true, null, null)], () => "k", 40);
  assert.deepEqual(lane?.bars[0]?.waited, [{ from: 10, to: 40 }]);
  assert.equal(lane?.bars[0]?.ran, null);
});

test("the review of a result is waiting, and no part of the run", () => {
  const reviewed = { ...call("1", 0, true, 5 * MINUTE, 30 * MINUTE), reviewed_at: 10 * MINUTE, answered_at: 30 * MINUTE };
  const [lane] = buildLanes([reviewed], () => "k", 0);
  assert.deepEqual(lane?.bars[0]?.waited, [{ from: 0, to: 5 * MINUTE }, { from: 10 * MINUTE, to: 30 * MINUTE }]);
  assert.deepEqual(lane?.bars[0]?.ran, { from: 5 * MINUTE, to: 10 * MINUTE });
  assert.equal(waitedText(lane ?? assert.fail()), "waited for you 25 of 30 minutes");
});

test("overlapping spans count once, short pauses count, long ones do not", () => {
  assert.equal(union([{ from: 0, to: 5 }, { from: 3, to: 8 }, { from: 10, to: 12 }], 0), 10);
  assert.equal(union([{ from: 0, to: 5 }, { from: 7, to: 8 }, { from: 100, to: 101 }], 3), 9);
});

test("the axis begins with the last stretch of work, and zooms around a point", () => {
  const span = lastStretch([call("1", 0, false, 0, 10), call("2", 500 * MINUTE, false, 0, 501 * MINUTE), call("3", 510 * MINUTE, false, 0, 520 * MINUTE)], 0);
  assert.ok(span.from < 500 * MINUTE && span.from > 490 * MINUTE && span.to > 520 * MINUTE);
  assert.deepEqual(zoomed({ from: 0, to: 1000 }, 0.5, 250), { from: 125, to: 625 });
  assert.deepEqual(panned({ from: 0, to: 1000 }, 0.5), { from: 500, to: 1500 });
  assert.ok(zoomed({ from: 0, to: 100 }, 0.001).to - zoomed({ from: 0, to: 100 }, 0.001).from >= 100);
});

test("the times on the axis are round and few", () => {
  const at = ticks({ from: 1_000, to: 61_000 }, 6);
  assert.deepEqual(at, [10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
});
