/**
 * Requests to the daemon. Paths, parameters, bodies and responses are checked against its OpenAPI description
 * (wire.ts).
 *
 * Adds the bearer and a timeout, and turns failures into `ApiError` and `NetworkError`.
 */
import createClient, { type Client } from "openapi-fetch";

import type { paths } from "../wire.ts";
import { type LiveSocket, transport } from "./transport.ts";
import type { AdoptBody, AgentEntryBody, AnswerBody, CompleteBody, EditBody, ForkBody, OpenBody, PromptBody, Provider, PushBody, RuleBody, Seen, ServerBody, SettingBody, SettingValues, SignedIn, TestBody, ThreadBody } from "./types.ts";

/** The daemon refused a request; the message is its own. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

/** No response: the daemon is down, or the request timed out. */
export class NetworkError extends Error {}

/** Longer than any request of a page on the same machine takes. */
const TIMEOUT_MS = 15_000;
/** Pauses before an answer is sent again: half a minute, in which a phone finds its network again. */
const REPEAT_MS = [250, 500, 1000, 2000, 4000, 4000, 8000, 8000];
/** For whole outputs and images. */
const DOWNLOAD_TIMEOUT_MS = 120_000;

type Query<Path extends keyof paths> = paths[Path] extends { get: { parameters: { query?: infer Parameters } } } ? NonNullable<Parameters> : never;
export type CallQuery = Query<"/api/calls">;
export type CallTableQuery = Query<"/api/calls/table">;
export type OutputQuery = Query<"/api/terminals/{id}/output">;

export class Api {
  private readonly bearer: string;
  private readonly http: Client<paths>;

  constructor(bearer: string, baseUrl = "") {
    this.bearer = bearer;
    this.http = connect(bearer, baseUrl);
  }

  state = () => dataOf(this.http.GET("/api/state"));
  calls = (query: CallQuery) => dataOf(this.http.GET("/api/calls", { params: { query } }));
  callTable = (query: CallTableQuery) => dataOf(this.http.GET("/api/calls/table", { params: { query } }));
  callCounts = (query: Query<"/api/calls/counts">) => dataOf(this.http.GET("/api/calls/counts", { params: { query } }));
  exportCalls = (query: Query<"/api/calls/export">) => dataOf(this.http.GET("/api/calls/export", { params: { query }, ...DOWNLOAD }));
  call = (id: string) => dataOf(this.http.GET("/api/calls/{id}", at({ id })));
  cancel = (id: string) => dataOf(this.http.POST("/api/calls/{id}/cancel", at({ id })));
  complete = (id: string, body: CompleteBody) => dataOf(this.http.POST("/api/calls/{id}/complete", { ...at({ id }), body: sent(body) }));
  approval = (id: string) => dataOf(this.http.GET("/api/approvals/{id}", at({ id })));
  /** Sent again with the same id until the daemon confirms it: a lost connection neither loses nor doubles an answer. */
  answer = (id: string, body: AnswerBody) => {
    const once = { ...body, request_id: crypto.randomUUID() };
    return repeated(() => dataOf(this.http.POST("/api/approvals/{id}/answer", { ...at({ id }), body: sent(once) })));
  };
  edit = (id: string, body: EditBody) => dataOf(this.http.POST("/api/approvals/{id}/edit", { ...at({ id }), body: sent(body) }));
  proposal = (id: string) => dataOf(this.http.GET("/api/approvals/{id}/proposal", at({ id })));
  allowLow = (approvals: readonly Seen[]) => dataOf(this.http.POST("/api/approvals/allow-low", { body: { approvals: [...approvals] } }));

  rules = (workspace?: string) => dataOf(this.http.GET("/api/rules", { params: { query: workspace ? { workspace } : {} } }));
  makeRule = (rule: RuleBody) => dataOf(this.http.POST("/api/rules", { body: sent(rule) }));
  revoke = (id: string) => dataOf(this.http.DELETE("/api/rules/{id}", at({ id })));
  switchRule = (id: string, enabled: boolean) => dataOf(this.http.PATCH("/api/rules/{id}", { ...at({ id }), body: { enabled } }));
  moveRule = (id: string, before: string | null) => dataOf(this.http.POST("/api/rules/{id}/move", { ...at({ id }), body: { before } }));
  testCall = ({ rule, ...body }: TestBody) => dataOf(this.http.POST("/api/rules/test", { body: sent({ ...body, rule: rule ? sent(rule) : null }) }));
  propose = (rule: RuleBody, approval: string | null = null) => dataOf(this.http.POST("/api/rules/propose", { body: { rule: sent(rule), approval } }));
  signIns = () => dataOf(this.http.GET("/api/sign-ins"));
  renameSignIn = (id: string, name: string) => dataOf(this.http.PATCH("/api/sign-ins/{id}", { ...at({ id }), body: { name } }));
  signOut = (id: string) => dataOf(this.http.DELETE("/api/sign-ins/{id}", at({ id })));
  pushKey = () => dataOf(this.http.GET("/api/push"));
  subscribePush = (body: PushBody) => dataOf(this.http.PUT("/api/push", { body }));
  unsubscribePush = () => dataOf(this.http.DELETE("/api/push"));
  pairEditor = (id: string, number: number) => dataOf(this.http.POST("/api/editors/{id}/pair", { ...at({ id }), body: { number } }));
  refuseEditor = (id: string) => dataOf(this.http.POST("/api/editors/{id}/refuse", at({ id })));
  settings = () => dataOf(this.http.GET("/api/settings"));
  changeSettings = (values: SettingValues) => dataOf(this.http.PATCH("/api/settings", { body: { values } }));
  addAgent = (body: AgentEntryBody) => dataOf(this.http.POST("/api/settings/agents", { body: sent(body) }));
  removeAgent = (name: string) => dataOf(this.http.DELETE("/api/settings/agents/{name}", at({ name })));
  startDemo = () => dataOf(this.http.POST("/api/clients/demo"));
  knownClients = () => dataOf(this.http.GET("/api/clients/known"));
  keys = () => dataOf(this.http.GET("/api/keys"));
  /** The system may ask its user to unlock the keyring first. */
  storeKey = (provider: Provider, key: string) => dataOf(this.http.PUT("/api/keys/{provider}", { ...at({ provider }), body: { key }, fetch: fetchWithin(DOWNLOAD_TIMEOUT_MS) }));
  removeKey = (provider: Provider) => dataOf(this.http.DELETE("/api/keys/{provider}", at({ provider })));
  servers = () => dataOf(this.http.GET("/api/servers"));
  serverLogs = (name: string) => dataOf(this.http.GET("/api/servers/{name}/logs", at({ name })));
  secrets = () => dataOf(this.http.GET("/api/secrets"));
  /** The system may ask its user to unlock the keyring first. */
  storeSecret = (name: string, value: string) => dataOf(this.http.PUT("/api/secrets/{name}", { ...at({ name }), body: { value }, fetch: fetchWithin(DOWNLOAD_TIMEOUT_MS) }));
  removeSecret = (name: string) => dataOf(this.http.DELETE("/api/secrets/{name}", at({ name })));
  logins = () => dataOf(this.http.GET("/api/logins"));
  /** The authorization server may answer slowly. */
  beginLogin = (server: string) => dataOf(this.http.POST("/api/logins/{server}", { ...at({ server }), fetch: fetchWithin(DOWNLOAD_TIMEOUT_MS) }));
  forgetLogin = (server: string) => dataOf(this.http.DELETE("/api/logins/{server}", at({ server })));
  addServer = (body: ServerBody) => dataOf(this.http.POST("/api/servers", { body: sent(body) }));
  removeServer = (name: string) => dataOf(this.http.DELETE("/api/servers/{name}", { ...at({ name }), fetch: fetchWithin(DOWNLOAD_TIMEOUT_MS) }));
  restartServer = (name: string) => dataOf(this.http.POST("/api/servers/{name}/restart", { ...at({ name }), fetch: fetchWithin(DOWNLOAD_TIMEOUT_MS) }));
  /** A server may need long to start. */
  testServer = (name: string) => dataOf(this.http.POST("/api/servers/{name}/test", { ...at({ name }), fetch: fetchWithin(DOWNLOAD_TIMEOUT_MS) }));
  acceptServerTool = (name: string, tool: string, digest: string) => dataOf(this.http.POST("/api/servers/{name}/tools/{tool}/accept", { ...at({ name, tool }), body: { digest } }));
  pause = () => dataOf(this.http.PUT("/api/pause"));
  resume = () => dataOf(this.http.DELETE("/api/pause"));
  stopEverything = () => dataOf(this.http.POST("/api/stop"));
  acceptPolicy = (digest: string) => dataOf(this.http.POST("/api/policy/accept", { body: { digest } }));
  folders = () => dataOf(this.http.GET("/api/folders"));
  trust = (folder: string, config: string | null) => dataOf(this.http.POST("/api/folders/trust", { body: { folder, config } }));
  distrust = (folder: string) => dataOf(this.http.POST("/api/folders/distrust", { body: { folder } }));
  undoPreview = (id: string) => dataOf(this.http.GET("/api/undo/{id}", at({ id })));
  undo = (id: string, digest: string) => dataOf(this.http.POST("/api/undo/{id}", { ...at({ id }), body: { digest } }));

  terminals = (query: Query<"/api/terminals">) => dataOf(this.http.GET("/api/terminals", { params: { query } }));
  terminal = (id: string) => dataOf(this.http.GET("/api/terminals/{id}", at({ id })));
  openTerminal = (body: OpenBody) => dataOf(this.http.POST("/api/terminals", { body: sent(body) }));
  closeTerminal = (id: string) => dataOf(this.http.POST("/api/terminals/{id}/close", at({ id })));
  closeAgentGone = () => dataOf(this.http.POST("/api/terminals/close", { body: { which: "agent_gone" } }));
  takeTerminal = (id: string) => dataOf(this.http.POST("/api/terminals/{id}/take", at({ id })));
  releaseTerminal = (id: string) => dataOf(this.http.POST("/api/terminals/{id}/release", at({ id })));
  pressKeys = (id: string, keys: readonly string[]) => dataOf(this.http.POST("/api/terminals/{id}/input", { ...at({ id }), body: { keys: [...keys], newline: true } }));
  typeInto = (id: string, text: string) => dataOf(this.http.POST("/api/terminals/{id}/input", { ...at({ id }), body: { text, newline: true, keys: [] } }));
  searchOutput = (id: string, query: Query<"/api/terminals/{id}/search">) => dataOf(this.http.GET("/api/terminals/{id}/search", { params: { path: { id }, query } }));
  /** Fetched, not linked: a link cannot carry the bearer. */
  output = (id: string, query: OutputQuery) => dataOf(this.http.GET("/api/terminals/{id}/output", { params: { path: { id }, query }, ...DOWNLOAD }));
  outputPage = (id: string, query: OutputQuery) => dataOf(this.http.GET("/api/terminals/{id}/output", { params: { path: { id }, query } }));

  threads = (query: Query<"/api/threads">) => dataOf(this.http.GET("/api/threads", { params: { query } }));
  thread = (id: string) => dataOf(this.http.GET("/api/threads/{id}", at({ id })));
  messages = (id: string, before: number, limit: number) => dataOf(this.http.GET("/api/threads/{id}/messages", { params: { path: { id }, query: { before, limit } } }));
  openThread = (body: ThreadBody) => dataOf(this.http.POST("/api/threads", { body: sent(body) }));
  renameThread = (id: string, title: string) => dataOf(this.http.PATCH("/api/threads/{id}", { ...at({ id }), body: { title } }));
  deleteThread = (id: string) => dataOf(this.http.DELETE("/api/threads/{id}", at({ id })));
  prompt = (id: string, body: PromptBody) => dataOf(this.http.POST("/api/threads/{id}/prompt", { ...at({ id }), body: sent(body) }));
  fork = (id: string, body: ForkBody) => dataOf(this.http.POST("/api/threads/{id}/fork", { ...at({ id }), body: sent(body) }));
  choose = (id: string, body: SettingBody) => dataOf(this.http.POST("/api/threads/{id}/setting", { ...at({ id }), body: sent(body) }));
  mentions = (id: string, q: string) => dataOf(this.http.GET("/api/threads/{id}/files", { params: { path: { id }, query: { q, limit: 12 } } }));
  sendQueued = (id: string, message: string) => dataOf(this.http.POST("/api/threads/{id}/queue/{message}/send", at({ id, message })));
  steerQueued = (id: string, message: string) => dataOf(this.http.POST("/api/threads/{id}/queue/{message}/steer", at({ id, message })));
  dropQueued = (id: string, message: string) => dataOf(this.http.DELETE("/api/threads/{id}/queue/{message}", at({ id, message })));
  exportThread = (id: string, format: "md" | "json") => dataOf(this.http.GET("/api/threads/{id}/export", { params: { path: { id }, query: { format } }, ...DOWNLOAD }));
  /** The body is a saved thread; OpenAPI describes it only as an object. */
  importThread = (thread: unknown) => dataOf(this.http.POST("/api/threads/import", { body: thread as Record<string, never> }));
  transcripts = (limit: number) => dataOf(this.http.GET("/api/transcripts", { params: { query: { limit } } }));
  transcript = (client: string, session: string) => dataOf(this.http.GET("/api/transcripts/{client}/{session}", at({ client, session })));
  exportTranscript = (client: string, session: string, format: "md" | "json") => dataOf(this.http.GET("/api/transcripts/{client}/{session}/export", { params: { path: { client, session }, query: { format } }, ...DOWNLOAD }));
  cancelOperation = (id: string) => dataOf(this.http.POST("/api/operations/{id}/cancel", at({ id })));
  operation = (id: string) => dataOf(this.http.GET("/api/operations/{id}", at({ id })));
  cancelActivity = (id: string, activity: string) => dataOf(this.http.POST("/api/operations/{id}/activities/{activity}/cancel", at({ id, activity })));
  agents = () => dataOf(this.http.GET("/api/agents"));
  agentSessions = (name: string, workspace: string | null) => dataOf(this.http.GET("/api/agents/{name}/sessions", { params: { path: { name }, query: workspace ? { workspace } : {} } }));
  adopt = (name: string, body: AdoptBody) => dataOf(this.http.POST("/api/agents/{name}/sessions", { ...at({ name }), body }));
  login = (name: string, method: string) => dataOf(this.http.POST("/api/agents/{name}/login", { ...at({ name }), body: { method } }));
  search = (q: string, limit: number) => dataOf(this.http.GET("/api/search", { params: { query: { q, limit } } }));
  image = (sha: string) => dataOf(this.http.GET("/api/images/{sha}", { ...at({ sha }), ...DOWNLOAD }));

  /** A socket that carries the bearer. */
  socket(path: string): LiveSocket {
    return transport().socket(path, this.bearer);
  }
}

/** Exchanges a one-time code for a bearer, and registers the key of this browser. */
export function signIn(code: string, key: string, name: string): Promise<SignedIn> {
  return dataOf(connect().POST("/api/sign-in", { body: { code, key, name } }));
}

export async function requestChallenge(signIn: string): Promise<string> {
  return (await dataOf(connect().POST("/api/sign-in/challenge", { body: { sign_in: signIn } }))).nonce;
}

export function signInByKey(signIn: string, nonce: string, signature: string): Promise<SignedIn> {
  return dataOf(connect().POST("/api/sign-in/key", { body: { sign_in: signIn, nonce, signature } }));
}

function connect(bearer?: string, baseUrl = ""): Client<paths> {
  const headers = { Accept: "application/json", ...(bearer ? { Authorization: `Bearer ${bearer}` } : {}) };
  return createClient<paths>({ baseUrl, headers, cache: "no-store", credentials: "omit", fetch: fetchWithin(TIMEOUT_MS) });
}

/** `fetch` that gives up after a while, and fails with `NetworkError`. */
function fetchWithin(timeout: number): (request: Request) => Promise<Response> {
  return (request) =>
    transport().fetch(request, AbortSignal.timeout(timeout)).catch((error: unknown) => {
      throw new NetworkError(String(error));
    });
}

/** Repeats a request that got no response, with growing pauses; the last failure is the caller's. */
async function repeated<Data>(ask: () => Promise<Data>): Promise<Data> {
  for (const pause of REPEAT_MS) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error;
      await new Promise((wake) => setTimeout(wake, pause));
    }
  }
  return ask();
}

const DOWNLOAD = { parseAs: "blob", fetch: fetchWithin(DOWNLOAD_TIMEOUT_MS) } as const;

function at<Path>(path: Path): { params: { path: Path } } {
  return { params: { path } };
}

/** The description requires fields that have a default; the daemon fills them in. */
function sent<Body>(body: Partial<Body>): Body {
  return body as Body;
}

interface Result<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: Response;
}

async function dataOf<Data>(request: Promise<Result<Data>>): Promise<Data> {
  const { data, error, response } = await request;
  if (!response.ok) throw new ApiError(response.status, detailOf(error) ?? `The daemon refused this with status ${response.status}.`);
  return data as Data;
}

function detailOf(error: unknown): string | null {
  return error && typeof error === "object" && "detail" in error && typeof error.detail === "string" ? error.detail : null;
}
