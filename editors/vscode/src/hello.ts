/**
 * The hello on the daemon's unix socket, as a person in an editor.
 *
 * The daemon answers with a line, and with another one each time when what this editor may do has changed. Each line has a
 * bearer, which ends the one before. The bearer is valid as long as the connection. Between these lines the daemon asks about
 * code; the editor sends its folders and the answers.
 */
import { connect, type Socket } from "node:net";

/** The version of the hello that this extension speaks. */
export const HELLO = 1;
const HELLO_TIMEOUT_MS = 10_000;
const LINE_MAX = 64 << 10;

/** What the daemon says to a hello. */
export interface Terms {
  readonly url: string;
  readonly version: string;
  readonly bearer: string;
  /** Whether this editor may decide. */
  readonly approves: boolean;
  readonly why: string;
  /** To be compared in the pairing question; null if none is open. */
  readonly number: number | null;
  /** Whether the daemon asks about code, so that it reads what an editor sends. */
  readonly asks: boolean;
}

/** A question of the daemon about code, or the end of one that needs no answer any more. */
export interface Question {
  readonly ask?: number;
  readonly cancel?: number;
  readonly what?: string;
  readonly input?: Readonly<Record<string, unknown>>;
}

/** A connection on which a hello was sent. */
export interface Connection {
  send(message: unknown): void;
  hangUp(): void;
}

/** The daemon did not let this editor in; the message says why and what to do. */
export class HelloError extends Error {
  /** Whether nobody listens on the socket, so that starting Handrail helps. */
  readonly canStart: boolean;

  constructor(message: string, canStart = false) {
    super(message);
    this.canStart = canStart;
  }
}

export interface HelloListener {
  terms(terms: Terms): void;
  asked(question: Question): void;
  /** Called once, after which nothing else is. */
  ended(error: HelloError): void;
}

/** Connects to the first of these sockets that answers. */
export function sayHello(sockets: readonly string[], workspace: string | null, listener: HelloListener): Connection {
  let socket: Socket | null = null;
  let over = false;
  const end = (error: HelloError): void => {
    if (over) return;
    over = true;
    socket?.destroy();
    listener.ended(error);
  };

  function attempt(at: number): void {
    const path = sockets[at];
    if (path === undefined) return end(new HelloError("Handrail is not running.", true));
    let greeted = false;
    const mine = (socket = connect(path));
    mine.once("error", () => (greeted ? end(new HelloError("The connection to Handrail was lost.")) : over || attempt(at + 1)));
    mine.once("connect", () => {
      greeted = true;
      mine.setTimeout(HELLO_TIMEOUT_MS, () => end(new HelloError("Handrail does not answer. `handrail doctor` shows why.")));
      mine.write(`${JSON.stringify({ handrail: HELLO, want: "person", place: "VS Code", pid: process.pid, ppid: process.ppid, cwd: "/", workspace })}\n`);
    });
    mine.once("close", () => greeted && end(new HelloError("The connection to Handrail was lost.")));
    readLines(mine, (line) => {
      mine.setTimeout(0);
      try {
        const question = parseQuestion(line);
        if (question) listener.asked(question);
        else listener.terms(parseTerms(line));
      } catch (error) {
        end(error instanceof HelloError ? error : new HelloError("What listens on Handrail's socket is not Handrail."));
      }
    });
  }

  attempt(0);
  return {
    send: (message) => void (over || socket?.write(`${JSON.stringify(message)}\n`)),
    hangUp: () => {
      over = true;
      socket?.destroy();
    },
  };
}

function readLines(socket: Socket, take: (line: string) => void): void {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LINE_MAX) socket.destroy();
    lines.forEach(take);
  });
}

/** Which of the two to update if the daemon and this extension come from different releases; empty if not. */
export function compareReleases(daemon: string, extension: string): string {
  const numbers = (release: string): string => /^[\d.]*/.exec(release)?.[0] ?? ""; // 0.2.0rc1 counts as 0.2.0
  const order = numbers(daemon).localeCompare(numbers(extension), "en", { numeric: true });
  if (order > 0) return `Handrail ${daemon} is newer than this extension, ${extension}. Run \`handrail connect vscode\`, then reload the window.`;
  return order < 0 ? `This extension, ${extension}, is newer than the running Handrail, ${daemon}. Update Handrail, then run \`handrail restart\`.` : "";
}

/** Reads a line of the daemon; null if it is no question. */
export function parseQuestion(line: string): Question | null {
  const message = JSON.parse(line) as Question;
  return typeof message.ask === "number" || typeof message.cancel === "number" ? message : null;
}

/** Reads a line of the daemon. A daemon that does not know editors answers without `approves`. */
export function parseTerms(line: string): Terms {
  const reply = JSON.parse(line) as Record<string, unknown>;
  if (typeof reply.handrail !== "number") throw new HelloError("What listens on Handrail's socket is not Handrail.");
  if (reply.handrail > HELLO) throw new HelloError("Handrail is newer than this extension. Run `handrail connect vscode`, then reload the window.");
  if (reply.handrail < HELLO || (reply.ok === true && typeof reply.approves !== "boolean")) {
    throw new HelloError("This extension is newer than the running Handrail. Update Handrail, then run `handrail restart`.");
  }
  if (reply.ok !== true) throw new HelloError(String(reply.why ?? "Handrail refused the connection."));
  return {
    url: String(reply.url),
    version: String(reply.version),
    bearer: String(reply.bearer),
    approves: reply.approves === true,
    why: String(reply.why ?? ""),
    number: typeof reply.number === "number" ? reply.number : null,
    asks: reply.asks === true,
  };
}
