import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";

import { Api, ApiError, NetworkError } from "./client.ts";

interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

const seen: Seen[] = [];
let response: (to: ServerResponse) => void = (to) => to.end("{}");
const server = createServer((request, to) => {
  let body = "";
  request.on("data", (chunk: Buffer) => (body += chunk.toString()));
  request.on("end", () => {
    seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body });
    response(to);
  });
});
let api: Api;

before(async () => {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  api = new Api("secret", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
after(() => server.close());

function answering(status: number, type: string, body: string): void {
  response = (to) => to.writeHead(status, { "Content-Type": type }).end(body);
}

function json(status: number, body: unknown): void {
  answering(status, "application/json", JSON.stringify(body));
}

test("a request carries the bearer, and its parameters are encoded", async () => {
  json(200, []);
  assert.deepEqual(await api.calls({ q: "a&b c", limit: 5 }), []);
  assert.equal(seen.at(-1)?.url, "/api/calls?q=a%26b%20c&limit=5");
  assert.equal(seen.at(-1)?.headers.authorization, "Bearer secret");
  await api.call("../state?x=1");
  assert.equal(seen.at(-1)?.url, "/api/calls/..%2Fstate%3Fx%3D1");
});

test("a body is sent as JSON, and a request without one has no content type", async () => {
  json(200, { won: true });
  await api.complete("c1", { stop: true });
  assert.deepEqual([seen.at(-1)?.method, seen.at(-1)?.body, seen.at(-1)?.headers["content-type"]], ["POST", '{"stop":true}', "application/json"]);
  await api.cancel("c1");
  assert.deepEqual([seen.at(-1)?.method, seen.at(-1)?.body, seen.at(-1)?.headers["content-type"]], ["POST", "", undefined]);
});

test("a refusal is an ApiError in the daemon's words", async () => {
  json(409, { detail: "Already denied from phone 12 s ago." });
  await assert.rejects(api.cancel("c1"), (error) => error instanceof ApiError && error.status === 409 && error.message === "Already denied from phone 12 s ago.");
});

test("a refusal that is not JSON has its status in its message", async () => {
  answering(502, "text/plain", "bad gateway");
  await assert.rejects(api.state(), (error) => error instanceof ApiError && error.message === "The daemon refused this with status 502.");
});

test("a response without content is no error", async () => {
  response = (to) => to.writeHead(204).end();
  assert.equal(await api.revoke("r1"), undefined);
});

test("a download is a blob, whatever its type", async () => {
  answering(200, "text/plain", "line\n");
  assert.equal(await (await api.output("t1", { mode: "text", download: true })).text(), "line\n");
});

test("an answer whose response is lost is sent again with the same id", async () => {
  let left = 2;
  response = (to) => (left-- > 0 ? to.destroy() : to.writeHead(200, { "Content-Type": "application/json" }).end('{"status":"allowed"}'));
  const before = seen.length;
  assert.deepEqual(await api.answer("a1", { answer: "allow", digest: "d" }), { status: "allowed" });
  const ids = seen.slice(before).map(({ body }) => (JSON.parse(body) as { request_id: string }).request_id);
  assert.equal(ids.length, 3);
  assert.equal(new Set(ids).size, 1);
  json(409, { detail: "Already denied by a person on the phone, 2 s ago." });
  await assert.rejects(api.answer("a1", { answer: "allow", digest: "d" }), (error) => error instanceof ApiError && error.status === 409);
});

test("a daemon that is not there is a NetworkError", async () => {
  await assert.rejects(new Api("secret", "http://127.0.0.1:1").state(), NetworkError);
});
