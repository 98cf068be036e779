/**
 * One open thread: its loaded messages, and the live socket that extends them.
 *
 * Owns the socket, reconnects, and the loaded range of messages. Merging is in threads/messages.ts.
 */
import { type Api, ApiError } from "../../api/client.ts";
import type { LiveSocket } from "../../api/transport.ts";
import type { Entry, Json, ThreadFlow, ThreadView } from "../../api/types.ts";
import type { Listener } from "../../state/store.svelte.ts";
import { applyFlow, type Chunk, chunkMessages, mergeNewer, type Messages, prependOlder } from "./messages.ts";

export type ConversationApi = Pick<Api, "thread" | "messages" | "socket">;

const PAGE = 60;
/** Page size around a message that is looked up. */
const AROUND = 30;
/** The largest page that the daemon serves. */
const MOST = 1000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4000;
/** A hidden page gets no animation frames, but must not buffer for ever. */
const UNSEEN_MS = 500;
/** There is no such thread (any more). */
const GONE = 4404;

export class Conversation {
  thread = $state.raw<ThreadView | null>(null);
  messages = $state.raw<Messages>([]);
  state = $state.raw<Readonly<Record<string, Json>>>({});
  /** There are older messages. */
  more = $state(false);
  /** Newer messages exist that are not loaded: an old one was looked up. */
  apart = $state(false);
  operation = $state<string | null>(null);
  line = $state<"up" | "down">("down");
  loaded = $state(false);
  problem = $state("");
  readonly id: string;
  private readonly api: ConversationApi;
  private socket: LiveSocket | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private pause = FIRST_PAUSE_MS;
  private stopped = false;
  private rev = 0;
  private loading: Promise<void> | null = null;
  private flows: ThreadFlow[] = [];
  private drawing = 0;
  private readonly unsubscribe: () => void;

  constructor(api: ConversationApi, id: string, subscribe: (listener: Listener) => () => void) {
    this.api = api;
    this.id = id;
    this.unsubscribe = subscribe((entry) => this.onEntry(entry));
    void this.connect();
  }

  private boxes: readonly Chunk[] = [];
  readonly chunks = $derived.by(() => (this.boxes = chunkMessages(this.shown, this.boxes)));
  /** Queued prompts are shown separately. */
  readonly shown = $derived(this.messages.filter(({ queued }) => !queued));
  readonly queue = $derived(this.messages.filter(({ queued }) => queued));

  stop(): void {
    this.stopped = true;
    this.unsubscribe();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.drawing);
    this.hang();
  }

  /** Loads an older page; resolves to whether any came. */
  async older(): Promise<boolean> {
    const first = this.messages[0];
    if (!this.more || !first) return false;
    return this.page(first.n, PAGE, (said) => prependOlder(this.messages, said));
  }

  /** Loads a newer page, if the end is not loaded. */
  async newer(): Promise<boolean> {
    const last = this.messages.at(-1);
    if (!this.apart || !last) return false;
    const came = await this.stretch(last.n + 1 + PAGE, PAGE);
    if (!came) return false;
    this.messages = mergeNewer(this.messages, came.said);
    this.apart = came.said.length === PAGE && came.said.at(-1)?.n === last.n + PAGE;
    if (!this.apart) await this.load();
    return true;
  }

  /** Loads the end. */
  async toEnd(): Promise<void> {
    if (!this.apart) return;
    this.messages = [];
    this.apart = false;
    await this.load();
  }

  /** Loads this message if needed; its position is known if a search found it. */
  async find(message: string, n: number | null): Promise<boolean> {
    await this.loading;
    if (this.has(message)) return true;
    if (n !== null) return this.around(message, n);
    while (this.more && !this.has(message)) {
      const first = this.messages[0]?.n ?? 0;
      if (!(await this.page(first, MOST, (said) => prependOlder(this.messages, said)))) break;
    }
    return this.has(message);
  }

  private async around(message: string, n: number): Promise<boolean> {
    const came = await this.stretch(n + AROUND, 2 * AROUND);
    if (!came?.said.length) return false;
    const close = (this.messages[0]?.n ?? 0) <= (came.said.at(-1)?.n ?? 0) + 1;
    this.messages = close ? prependOlder(this.messages, came.said) : came.said;
    this.more = came.more;
    if (!close) this.apart = true;
    return this.has(message);
  }

  private has(message: string): boolean {
    return this.messages.some(({ id }) => id === message);
  }

  private async page(before: number, limit: number, put: (said: Messages) => Messages): Promise<boolean> {
    const came = await this.stretch(before, limit);
    if (!came) return false;
    this.messages = put(came.said);
    this.more = came.more;
    return came.said.length > 0;
  }

  private async stretch(before: number, limit: number): Promise<{ said: Messages; more: boolean } | null> {
    return this.api.messages(this.id, before, limit).catch(() => null); // a banner reports a daemon that is down
  }

  private async connect(): Promise<void> {
    if (this.stopped) return;
    await this.load();
    if (this.stopped || this.problem) return;
    if (!this.loaded) return this.later();
    const mine = this.api.socket(`/api/threads/${encodeURIComponent(this.id)}/live?after=${this.rev}`);
    this.socket = mine;
    mine.onopen = () => {
      this.line = "up";
      this.pause = FIRST_PAUSE_MS;
    };
    mine.onmessage = ({ data }: MessageEvent<string>) => this.gather(JSON.parse(data) as ThreadFlow);
    mine.onclose = ({ code }) => {
      if (mine !== this.socket) return;
      this.line = "down";
      if (code === GONE) this.problem = "This thread was deleted.";
      else this.later();
    };
  }

  private hang(): void {
    const mine = this.socket;
    this.socket = undefined;
    if (!mine) return;
    mine.onclose = mine.onmessage = mine.onopen = null;
    mine.close();
  }

  private later(): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => void this.connect(), this.pause);
    this.pause = Math.min(this.pause * 1.7, LONGEST_PAUSE_MS);
  }

  /** Loads the newest messages and merges them; one request at a time. */
  private load(): Promise<void> {
    this.loading ??= this.ask().finally(() => (this.loading = null));
    return this.loading;
  }

  private async ask(): Promise<void> {
    try {
      const { rev, said: newest, more, state, ...thread } = await this.api.thread(this.id);
      const fresh = this.apart ? this.messages : mergeNewer(this.messages, newest);
      if (!this.apart && fresh.length === newest.length) this.more = more;
      this.messages = fresh;
      this.thread = thread;
      this.operation = thread.operation;
      this.state = state;
      this.rev = rev;
      this.loaded = true;
      this.problem = "";
    } catch (error) {
      if (error instanceof ApiError) this.problem = error.message;
    }
  }

  /** Starts again from a snapshot: a frame is missing. */
  private restart(): void {
    this.flows = [];
    this.hang();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.connect());
  }

  private gather(flow: ThreadFlow): void {
    this.flows.push(flow);
    if (this.drawing) return;
    if (document.hidden) this.drawing = setTimeout(() => this.draw(), UNSEEN_MS) as unknown as number;
    else this.drawing = requestAnimationFrame(() => this.draw());
  }

  /** Applies everything received since the last frame. */
  private draw(): void {
    this.drawing = 0;
    const flows = this.flows;
    this.flows = [];
    let messages = this.messages;
    for (const flow of flows) {
      const next = applyFlow(messages, flow, this.apart);
      if (!next) return this.restart();
      messages = next;
      this.rev = flow.rev;
      if (flow.reset || Object.keys(flow.state).length) this.state = flow.reset ? flow.state : { ...this.state, ...flow.state };
    }
    this.messages = messages;
  }

  /** Facts beside the messages: the running operation, and the title. */
  private onEntry(entry: Entry | null): void {
    if (!entry) return this.restart();
    const { event } = entry;
    if (event.kind === "OperationEnded" && event.operation === this.operation) this.operation = null;
    if (event.kind === "OperationOpened" && event.caller.thread === this.id) this.operation = event.operation;
    if (!("thread" in event) || event.thread !== this.id) return;
    if (event.kind === "ThreadRenamed" && this.thread) this.thread = { ...this.thread, title: event.title };
    if (event.kind === "ThreadDeleted") this.problem = "This thread was deleted.";
  }
}
