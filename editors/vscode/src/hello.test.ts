import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { compareReleases, type HelloError, sayHello, type Terms } from "./hello.ts";

const TERMS = { handrail: 1, ok: true, url: "http://127.0.0.1:1", version: "1", bearer: "b", approves: true, why: "", number: null };

/** Says hello to a daemon that answers with these lines and then hangs up; what came of it. */
function hello(...lines: string[]): Promise<{ terms: Terms[]; error: HelloError }> {
  const folder = mkdtempSync(join(tmpdir(), "hello"));
  const path = join(folder, "daemon.sock");
  const server = createServer((socket) => socket.once("data", () => socket.end(lines.map((line) => `${line}\n`).join(""))));
  return new Promise((resolve) => {
    server.listen(path, () => {
      const terms: Terms[] = [];
      const ended = (error: HelloError): void => {
        server.close();
        rmSync(folder, { recursive: true });
        resolve({ terms, error });
      };
      sayHello([join(folder, "nobody.sock"), path], "/work", { terms: (each) => terms.push(each), asked: () => assert.fail(), ended });
    });
  });
}

const says = async (line: object): Promise<string> => (await hello(JSON.stringify(line))).error.message;

test("the next socket is tried, and each line of the daemon is passed on", async () => {
  const { terms, error } = await hello(JSON.stringify({ ...TERMS, approves: false, number: 123 }), JSON.stringify(TERMS));
  assert.deepEqual(terms.map(({ approves, number }) => [approves, number]), [[false, 123], [true, null]]);
  assert.equal(error.canStart, false);
});

test("without a daemon it can be started", async () => {
  const error = await new Promise<HelloError>((ended) => sayHello(["/nowhere/daemon.sock"], null, { terms: () => assert.fail(), asked: () => assert.fail(), ended }));
  assert.equal(error.canStart, true);
});

test("of an old daemon and an old extension the older one is named", async () => {
  assert.match(await says({ ...TERMS, handrail: 2 }), /newer than this extension.*handrail connect vscode/);
  assert.match(await says({ ...TERMS, handrail: 0 }), /extension is newer.*handrail restart/);
  assert.match(await says({ handrail: 1, ok: true, url: TERMS.url, version: "0", bearer: "b" }), /extension is newer.*handrail restart/);
});

test("of different releases that understand each other the older one is named, too", () => {
  assert.match(compareReleases("0.10.0", "0.9.1"), /^Handrail 0\.10\.0 is newer.*handrail connect vscode/);
  assert.match(compareReleases("0.9.1", "0.10.0"), /^This extension, 0\.10\.0, is newer.*handrail restart/);
  assert.equal(compareReleases("0.10.0", "0.10.0"), "");
});

test("a refusal is told in the daemon's words, and what is no daemon is named", async () => {
  assert.equal(await says({ handrail: 1, ok: false, why: "Not from a terminal of Handrail." }), "Not from a terminal of Handrail.");
  assert.match((await hello("HTTP/1.1 400 Bad Request")).error.message, /not Handrail/);
});
