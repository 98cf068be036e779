// A client of the official TypeScript SDK: begins a conversation, cancels in both of the protocol's ways, loses its agent,
// and takes the conversation up with another. Prints what it saw, as JSON. Knows nothing of any agent in particular.
//
//   node client.mjs SDK '{"command": [...], "cwd": ..., "first": ..., "cancelled": ..., "withdrawn": ..., "last": ..., "heard": {...}}'
//
// Four are prompts; to `cancelled` and `withdrawn` an agent is to say the words of `heard`, and not to end.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";

const acp = await import(process.argv[2]);
const told = JSON.parse(process.argv[3]);

async function withAgent(work) {
  const [command, ...args] = told.command;
  const process = spawn(command, args, { cwd: told.cwd, stdio: ["pipe", "pipe", "inherit"] });
  const updates = [];
  let heard = () => {};
  const hears = () => new Promise((resolve) => (heard = resolve));
  const stream = acp.ndJsonStream(Writable.toWeb(process.stdin), Readable.toWeb(process.stdout));
  const result = await acp
    .client({ name: "tests" })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      heard();
    })
    .connectWith(stream, async (agent) => {
      await agent.request(acp.methods.agent.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientCapabilities: {},
      });
      return await work({ agent, process, updates, hears });
    });
  process.stdin.destroy();
  process.kill("SIGKILL");
  if (process.exitCode === null && process.signalCode === null) await once(process, "exit");
  return result;
}

const said = (updates, kind = "agent_message_chunk") =>
  updates.filter((each) => each.sessionUpdate === kind).map((each) => each.content.text).join("");

const prompt = (agent, sessionId, text, options) =>
  agent
    .request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }, options)
    .then((answer) => answer.stopReason, (error) => error.code);

async function untilSaid({ updates, hears }, words) {
  while (!said(updates).includes(words)) await hears();
}

const began = await withAgent(async (host) => {
  const { agent, updates } = host;
  const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: told.cwd, mcpServers: [] });
  const stops = [await prompt(agent, sessionId, told.first)];

  const cancelled = prompt(agent, sessionId, told.cancelled);
  await untilSaid(host, told.heard.cancelled);
  await agent.notify(acp.methods.agent.session.cancel, { sessionId });
  stops.push(await cancelled);

  const given = new AbortController();
  const withdrawn = prompt(agent, sessionId, told.withdrawn, { cancellationSignal: given.signal });
  await untilSaid(host, told.heard.withdrawn);
  given.abort();
  stops.push(await withdrawn);
  return { sessionId, stops, said: said(updates) };
});

const loaded = await withAgent(async ({ agent, updates }) => {
  const { sessionId } = began;
  await agent.request(acp.methods.agent.session.load, { sessionId, cwd: told.cwd, mcpServers: [] });
  const replayed = { prompts: said(updates, "user_message_chunk"), answers: said(updates) };
  const stop = await prompt(agent, sessionId, told.last);
  return { replayed, stop, said: said(updates).slice(replayed.answers.length) };
});

console.log(JSON.stringify({ began, loaded }));
process.exit(0);
