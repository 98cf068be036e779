import assert from "node:assert/strict";
import { test } from "node:test";

import type { Growth, Message, ThreadFlow } from "../../api/types.ts";
import { applyFlow, chunkMessages, mergeNewer, type Messages, messageText, prependOlder } from "./messages.ts";

function message(n: number, facts: Partial<Message> = {}): Message {
  return { id: `m${n}`, n, role: "assistant", agent: "demo", operation: null, queued: false, opened_at: n, ended_at: null, stop: null, parts: [], ...facts };
}

function grows(of: string, at: number, text: string, facts: Partial<Growth> = {}): Growth {
  return { message: of, n: 0, kind: "text", at, text, data: null, ...facts };
}

function flow(facts: Partial<ThreadFlow>): ThreadFlow {
  return { rev: 1, messages: [], parts: [], state: {}, dropped: [], reset: false, ...facts };
}

function after(said: Messages, ...flows: readonly Partial<ThreadFlow>[]): Messages {
  return flows.reduce<Messages>((known, one) => {
    const next = applyFlow(known, flow(one));
    assert.ok(next);
    return next;
  }, said);
}

const words = (said: Messages): string[] => said.map(({ parts }) => parts.map(({ text }) => text).join("|"));

test("a message begins, grows and ends, and the others keep their identity", () => {
  const known = [message(1), message(2)];
  const said = after(
    known,
    { messages: [message(3)], parts: [grows("m3", 0, "Hello", { data: {} })] },
    { parts: [grows("m3", 5, " you")] },
    { messages: [message(3, { ended_at: 9, stop: "end_turn" })] },
  );
  assert.deepEqual(words(said), ["", "", "Hello you"]);
  assert.equal(said[2]?.stop, "end_turn");
  assert.equal(said[0], known[0]);
});

test("the daemon counts characters, not the halves a browser counts", () => {
  const said = after([message(1)], { parts: [grows("m1", 0, "🎉a")] }, { parts: [grows("m1", 2, "b")] }, { parts: [grows("m1", 3, "🎉")] }, { parts: [grows("m1", 4, "!")] });
  assert.deepEqual(words(said), ["🎉ab🎉!"]);
});

test("a growth that goes on from what is not known asks for everything anew", () => {
  assert.equal(applyFlow([message(1)], flow({ parts: [grows("m1", 4, "x")] })), null);
  const known = after([message(1)], { parts: [grows("m1", 0, "abc")] });
  assert.equal(applyFlow(known, flow({ parts: [grows("m1", 7, "x")] })), null);
});

test("text that is replaced, and data that is left out, are what they are told to be", () => {
  const said = after([message(1)], { parts: [grows("m1", 0, "one", { kind: "note", data: { a: 1 } })] }, { parts: [grows("m1", 0, "two")] });
  assert.deepEqual(said[0]?.parts, [{ n: 0, kind: "text", text: "two", data: { a: 1 } }]);
});

test("parts stand in their order, whichever came first", () => {
  const said = after([message(1)], { parts: [grows("m1", 0, "second", { n: 1 }), grows("m1", 0, "first", { n: 0 })] });
  assert.deepEqual(words(said), ["first|second"]);
});

test("a queued prompt that is sent moves behind what was said meanwhile, and one that is dropped is gone", () => {
  const known = [message(1), message(2, { queued: true }), message(3, { queued: true }), message(4)];
  const said = after(known, { messages: [message(5, { id: "m2", queued: false })] }, { dropped: ["m3"] });
  assert.deepEqual(said.map(({ id }) => id), ["m1", "m4", "m2"]);
});

test("a flow that begins anew replaces what it holds and keeps what is older", () => {
  const known = [message(1), message(2, { parts: [{ n: 0, kind: "text", text: "old", data: {} }] })];
  const said = after(known, { reset: true, messages: [message(2), message(3)], parts: [grows("m2", 0, "new"), grows("m3", 0, "three")] });
  assert.deepEqual(words(said), ["", "new", "three"]);
});

test("what grows in a message that is not loaded is nobody's business", () => {
  const known = [message(50)];
  assert.deepEqual(applyFlow(known, flow({ parts: [grows("m7", 12, "x")] })), known);
  assert.deepEqual(applyFlow(known, flow({ messages: [message(90)] }), true)?.length, 1);
});

test("a snapshot joins what is known, and drops it where something lies between", () => {
  const known = [message(1), message(2)];
  assert.deepEqual(mergeNewer(known, [message(2), message(3)]).map(({ n }) => n), [1, 2, 3]);
  assert.equal(mergeNewer(known, [message(2), message(3)])[1], known[1]);
  assert.deepEqual(mergeNewer(known, [message(3)]).map(({ n }) => n), [1, 2, 3]);
  assert.deepEqual(mergeNewer(known, [message(9)]).map(({ n }) => n), [9]);
  assert.deepEqual(mergeNewer([], [message(9)]).map(({ n }) => n), [9]);
  assert.deepEqual(prependOlder(known, [message(0), message(1)]).map(({ n }) => n), [0, 1, 2]);
});

test("of very many messages only the boxes that changed are new", () => {
  const said = Array.from({ length: 5000 }, (_, at) => message(at));
  const before = chunkMessages(said);
  const now = chunkMessages(after(said, { parts: [grows("m4999", 0, "x")] }), before);
  assert.equal(now.length, 625);
  assert.deepEqual(now.map((chunk, at) => (chunk === before[at] ? 0 : 1)).reduce<number>((sum, one) => sum + one, 0), 1);
});

test("the text of a message is what can be read of it", () => {
  const parts = [{ n: 0, kind: "thought" as const, text: "hm", data: {} }, { n: 1, kind: "text" as const, text: "one", data: {} }, { n: 2, kind: "text" as const, text: "two", data: {} }];
  assert.equal(messageText({ parts }), "one\n\ntwo");
});
