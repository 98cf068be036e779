/** Fixtures: threads in every state. Never loaded by the page. */
import type { Activity, AgentSession, AgentView, Json, Message, Part, SearchView, ThreadFlow, ThreadView } from "../api/types.ts";
import { ActivityStore } from "../features/threads/activities.svelte.ts";
import { Conversation, type ConversationApi } from "../features/threads/conversation.svelte.ts";
import type { ThreadActions } from "../features/threads/threadActions.ts";
import { toasts } from "../state/toasts.svelte.ts";

export const NOW = Date.now();
const MINUTE = 60_000;
export const WORKSPACE = "/home/ada/api-server";

export function thread(id: string, title: string, facts: Partial<ThreadView> = {}): ThreadView {
  return { id, title, workspace: WORKSPACE, agent: "claude", created_at: NOW - 90 * MINUTE, updated_at: NOW - 4 * MINUTE, messages: 14, operation: null, queued: 0, forked_from: null, stop: "end_turn", ...facts };
}

export const rows: readonly ThreadView[] = [
  thread("h1", "Hash passwords instead of comparing them", { operation: "o1", updated_at: NOW }),
  thread("h2", "Why is the nightly build so slow?", { operation: "o2", updated_at: NOW - 20_000, agent: "opencode" }),
  thread("h3", "Default", { messages: 1 }),
  thread("h4", "A title that is far too long to stand in a row of this list, as first lines of prompts often are", { queued: 2, updated_at: NOW - 34 * MINUTE }),
  thread("h5", "Rename the user table", { forked_from: "h1", stop: "cancelled", updated_at: NOW - 300 * MINUTE }),
  thread("h6", "Port the scripts to Python 3.14", { stop: "failed", updated_at: NOW - 2000 * MINUTE, agent: "gemini" }),
  thread("h7", "Write the release notes", { stop: "interrupted", updated_at: NOW - 3000 * MINUTE }),
  thread("h8", "", { stop: "max_tokens", messages: 5210, updated_at: NOW - 9000 * MINUTE }),
];

let counter = 0;

function part(kind: Part["kind"], text: string, data: Json = {}): Omit<Part, "n"> {
  return { kind, text, data };
}

export function message(role: Message["role"], parts: readonly Omit<Part, "n">[], facts: Partial<Message> = {}): Message {
  const n = ++counter;
  return {
    id: `m${n}`, n, role, agent: "claude", operation: null, queued: false, opened_at: NOW - 30 * MINUTE + n * 20_000, ended_at: NOW, stop: role === "assistant" ? "end_turn" : null,
    parts: parts.map((one, at) => ({ n: at, ...one })), ...facts,
  };
}

const call = (facts: Json): Omit<Part, "n"> =>
  part("call", "", { id: "tc", title: "", sort: "other", status: "completed", call: null, tool: "", locations: [], content: [], input: null, output: null, ...facts });

const ANSWER = `Passwords are compared **as they are**, so whoever reads \`users.db\` can log in as anybody. I would:

1. hash them with \`argon2\`, see [its documentation](https://argon2-cffi.readthedocs.io/),
2. rehash on the next login, and
3. throttle failed tries per name.

> The session does not expire either. That is a change of its own.

\`\`\`python
def login(user: User, password: str) -> Session:
    record = users.find(user.name)
    if not verify(record.hash, password):
        throttle.note(user.name)  # slow, and then slower
        raise Refused(user.name)
    return Session(user, expires=now() + timedelta(hours=12))
\`\`\`

| file | what changes | lines |
|---|---|--:|
| \`src/auth.py\` | verify and rehash | 9 |
| \`src/throttle.py\` | new | 41 |

- [x] read the code
- [ ] write the change
  - the test first
`;

export const HOSTILE = `# A heading <img src=x onerror="document.title='owned'">

<script>document.title = "owned"</script>

<a href="javascript:document.title='owned'">click</a> and [click](javascript:alert(1)) and [data](data:text/html,<script>alert(1)</script>)

![a pixel](https://tracker.example/pixel.png?who=me) and [github.com](https://evil.example/github.com) and <https://example.org/?a=1&b=2>

<style>body { display: none }</style><iframe src="https://evil.example"></iframe><form action="https://evil.example"><input name=x></form>

[a file](src/auth.py) · [a note][1] · \`code <b>not bold</b>\` · ***very*** ~~gone~~

[1]: https://example.org/note "title \\" onmouseover=alert(1)"

- in a list:

  \`\`\`html
  <b onclick="alert(1)">nested</b>\u202e
  \`\`\`
`;

export const said: readonly Message[] = [
  message("user", [part("text", "How are passwords checked? Please look at @src/auth.py,\nand make it safe."), part("file", "", { uri: "file:///home/ada/api-server/src/auth.py", name: "src/auth.py" })]),
  message("assistant", [
    part("note", "claude resumed its own record of this conversation."),
    part("thought", "I should read `src/auth.py` first.\n\nThen see who calls **login**, and whether there are tests."),
    call({ id: "tc1", title: "Read src/auth.py", sort: "read", locations: [{ path: "src/auth.py", line: 12 }], input: { path: "src/auth.py" }, content: [{ kind: "text", text: "```python\ndef login(user, password):\n    …\n```" }] }),
    part("text", ANSWER),
    part("plan", "", {
      entries: [
        { content: "Read how passwords are checked", priority: "high", status: "completed" },
        { content: "Verify hashes, and rehash on login", priority: "high", status: "in_progress" },
        { content: "Throttle failed tries", priority: "medium", status: "pending" },
      ],
    }),
    call({ id: "tc2", title: "Edit src/auth.py", sort: "edit", status: "completed", content: [{ kind: "diff", path: "src/auth.py", old: "a\nb\nc\nd\n", new: "a\nB\nc\nd\ne\n" }] }),
    call({ id: "tc3", title: "Search the web for argon2 parameters", sort: "fetch", status: "failed", output: "no network" }),
    call({ id: "tc4", title: "Think it over", sort: "think", status: "in_progress" }),
  ]),
  message("user", [part("text", "Go on with the edit.")]),
];

export const failures: readonly Message[] = [
  message("user", [part("text", "Hello?")]),
  message("assistant", [part("error", "gemini ended with code 1 before it answered. Install it again: `npm install -g @google/gemini-cli`", { said: ["Error: Cannot find module 'undici'", "    at Module._resolveFilename", "Node.js v24.1.0"], logins: [] })], { agent: "gemini", stop: "failed" }),
  message("assistant", [part("error", "claude wants you to log in first.", { said: [], logins: [{ id: "oauth", name: "Log in with Claude", description: "Opens your browser" }, { id: "key", name: "API key", description: "In a terminal", command: "claude /login" }] })], { stop: "failed" }),
  message("assistant", [part("text", "I began to"), part("raw", "", { update: { sessionUpdate: "weather_update", sky: "clear" } })], { stop: "interrupted" }),
  message("assistant", [part("text", "As far as I got: the build spends most of its time")], { stop: "max_tokens" }),
  message("assistant", [part("text", "That I will not do.")], { stop: "refusal" }),
  message("assistant", [part("thought", "Let me see")], { stop: null, ended_at: null, operation: "o1" }),
];

export const HOSTILE_TITLE = "Hostile \u202e words";
export const hostile: readonly Message[] = [message("assistant", [part("text", HOSTILE)])];

export const state: Readonly<Record<string, Json>> = {
  modes: { current: "code", modes: [{ id: "ask", name: "Ask", description: "Changes nothing" }, { id: "code", name: "Code", description: "Asks before it changes something" }] },
  options: {
    options: [
      { id: "model", name: "Model", description: "", category: "model", type: "select", value: "opus", choices: [{ value: "opus", name: "Opus 5", description: "", group: "Large" }, { value: "haiku", name: "Haiku 5", description: "", group: "Small" }] },
      { id: "web", name: "Web", description: "May search the web", category: "", type: "boolean", value: true, choices: [] },
    ],
  },
  commands: { commands: [{ name: "review", description: "Review a change", hint: "branch or commit" }, { name: "compact", description: "Shorten the conversation", hint: "" }, { name: "init", description: "Write a file about this project", hint: "" }] },
  usage: { used: 48_210, size: 200_000, cost: { amount: 0.4213, currency: "USD" } },
};

/** An answer that was steered, and goes on. */
export const steered: readonly Message[] = [
  message("user", [part("text", "Format the sources.")], { operation: "o1" }),
  message("assistant", [part("text", "I look at how the project is formatted.")], { operation: "o1", stop: "steered" }),
  message("user", [part("text", "Use tabs, please.")], { operation: "o1" }),
  message("assistant", [part("text", "Tabs, then. I change `.editorconfig` first.")], { operation: "o1", stop: null, ended_at: null }),
];
export const queued: readonly Message[] = [message("user", [part("text", "And then write the release notes for it, in three sentences.")], { queued: true }), message("user", [part("text", "Run the tests again.")], { queued: true })];

/** A socket that sends nothing. */
class Mute extends EventTarget {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  constructor() {
    super();
    setTimeout(() => this.onopen?.());
  }

  close(): void {
    this.onmessage = null;
  }
}

export interface Spoken {
  readonly conversation: Conversation;
  readonly activityStore: ActivityStore;
  readonly thread: ThreadView;
  /** Sends a flow, as the daemon would. */
  flow(flow: Partial<ThreadFlow>): void;
}

/** A conversation that serves these messages as the daemon does. */
export function spoken(all: readonly Message[], facts: Partial<ThreadView> = {}, about: Readonly<Record<string, Json>> = {}, did: readonly Activity[] = []): Spoken {
  const view = thread(`g${++counter}`, "Hash passwords instead of comparing them", { messages: all.length, ...facts });
  let socket: Mute | undefined;
  let rev = 1;
  const wire: ConversationApi = {
    thread: () => Promise.resolve({ ...view, rev, said: all.slice(-60), more: all.length > 60, state: about }),
    messages: (_, before, limit) => {
      const older = all.filter(({ n }) => n < before);
      return new Promise((resolve) => setTimeout(() => resolve({ said: older.slice(-limit), more: older.length > limit }), 30));
    },
    socket: () => (socket = new Mute()) as unknown as WebSocket,
  };
  const conversation = new Conversation(wire, view.id, () => () => {});
  const over = facts.operation === undefined;
  const activityStore = new ActivityStore({ operation: (operation) => Promise.resolve({ operation, thread: view.id, agent: view.agent, opened_at: NOW, ended_at: over ? NOW : null, stop: over ? "cancelled" : null, cancelled_by: over ? "page" : null, cancelled_calls: [], cancelled_activities: [], error: "", activities: [...did] }) }, view.id, () => () => {});
  return { conversation, activityStore, thread: view, flow: (flow) => socket?.onmessage?.({ data: JSON.stringify({ rev: ++rev, messages: [], parts: [], state: {}, dropped: [], reset: false, ...flow }) }) };
}

/** A very long thread. */
export function many(count: number): readonly Message[] {
  const from = ++counter * 10_000;
  return Array.from({ length: count }, (_, at) => {
    const mine = at % 2 === 0;
    const words = mine ? `Question ${at}: what about line ${at * 7}?` : `Answer ${at}.\n\n${"It does what its name says, and nothing else. ".repeat(1 + (at % 9))}\n\n${at % 5 === 1 ? "```ts\nexport const value = 1;\n```" : ""}`;
    return { ...message(mine ? "user" : "assistant", [part("text", words)]), id: `x${from + at}`, n: from + at };
  });
}

/** Extends a growing answer by some words. */
export function speak({ flow, conversation }: Spoken, words: number): void {
  const id = "spoken";
  const known = conversation.messages.find((one) => one.id === id);
  if (!known) flow({ messages: [{ ...message("assistant", [], { id, ended_at: null, stop: null }), n: (conversation.messages.at(-1)?.n ?? 0) + 1 }], parts: [{ message: id, n: 0, kind: "text", at: 0, text: "# A long answer\n\n", data: {} }] });
  let length = known?.parts[0]?.text.length ?? 17;
  let word = Number(/word(\d+) \s*$/.exec(known?.parts[0]?.text ?? "")?.[1] ?? 0);
  const last = word + words;
  const timer = setInterval(() => {
    word++;
    const text = `${word % 120 === 0 ? "\n\n```py\nprint('a block of code')\n```\n\n" : word % 40 === 0 ? "\n\n" : ""}word${word} `;
    flow({ parts: [{ message: id, n: 0, kind: "text", at: length, text, data: null }] });
    length += text.length;
    if (word >= last) clearInterval(timer);
  }, 5);
}

const did = (what: string) => (): Promise<never> => (toasts.show(what), Promise.resolve(null as never));

export const actions: Pick<ThreadActions, "prompt" | "stop" | "fork" | "resend" | "choose" | "rename" | "delete" | "save" | "sendNow" | "steerNow" | "drop"> = {
  prompt: (_, body) => (toasts.show(`said: ${JSON.stringify(body)}`), Promise.resolve(true)),
  stop: did("stopped"), fork: did("forked"), resend: (_, __, { text }) => (toasts.show(`said in a fork: ${text}`), Promise.resolve(null)), choose: (_, body) => (toasts.show(`chose ${JSON.stringify(body)}`), Promise.resolve(null)),
  rename: did("renamed"), delete: did("deleted"), save: did("saved"), sendNow: did("sent now"), steerNow: did("steered"), drop: did("dropped"),
};

export const sessions: readonly AgentSession[] = [
  { id: "d5bb0a72", folder: WORKSPACE, title: "Fix the flaky login test", updated_at: Date.now() - 20 * MINUTE, thread: null },
  { id: "91c0ffee", folder: WORKSPACE, title: "A title that is far too long to stand in a row of this list, as first lines of prompts often are", updated_at: Date.now() - 3 * 24 * 60 * MINUTE, thread: "h2" },
  { id: "0badcafe", folder: WORKSPACE, title: "", updated_at: null, thread: null },
];

function agent(name: string, title: string, facts: Partial<AgentView> = {}): AgentView {
  return { name, title, found: true, version: "1.2.0", command: [name], source: "known", why: "", install: null, manager: null, package: null, running: false, logins: [], ...facts };
}

export const agents: readonly AgentView[] = [
  agent("handrail", "Handrail", { source: "built in", version: "0.5.0", why: "Handrail's own environment has no key for a model. `handrail keys set anthropic` puts one into your keyring." }),
  agent("claude", "Claude Code", { running: true }),
  agent("opencode", "opencode", { version: "0.9.4" }),
  agent("demo", "Demo", { source: "built in", version: null }),
  agent("gemini", "Gemini CLI", { found: false, why: "`gemini` is not on the path.", install: "npm install -g @google/gemini-cli" }),
  agent("goose", "goose", { found: false, why: "`goose` is not on the path.", install: "brew install block-goose-cli" }),
];

export const found: SearchView = {
  hits: [
    { kind: "message", thread: "h1", title: "Hash passwords instead of comparing them", message: "m2", n: 2, call: null, terminal: null, role: "assistant", at: NOW - 4 * MINUTE, snippet: "… hash them with argon2, and rehash on the next login …", marks: [[17, 23]] },
    { kind: "title", thread: "h5", title: "argon2 or bcrypt?", message: null, n: null, call: null, terminal: null, role: null, at: NOW - 300 * MINUTE, snippet: "argon2 or bcrypt?", marks: [[0, 6]] },
    { kind: "output", thread: "h1", title: "pip install argon2-cffi", message: null, n: null, call: "c12", terminal: null, role: null, at: NOW - 3000 * MINUTE, snippet: "Successfully installed argon2-cffi-25.1.0 🎉 argon2 bindings", marks: [[23, 29], [44, 50]] },
  ],
  more: false,
};
export const nothing: SearchView = { hits: [], more: false };
