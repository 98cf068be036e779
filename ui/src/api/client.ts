/**
 * Requests to the daemon, each with the bearer, each answered with its generated type.
 *
 * Owns the routes and what their refusals look like. It does not know the page's state.
 */
import type {
  AgentView, AllowedLow, AnswerBody, ApprovalView, CallDetail, CallView, Closed, CompleteBody, EditBody, EditView, FolderView, ForkBody, Forced, Found, OpenBody, OperationDetail, PromptBody, Prompted,
  ProposalView, ProposedView, RuleBody, RulesView, RuleView, SearchView, Seen, SettingBody, SignedIn, State, TerminalDetail, TerminalView, TestBody, TestView, ThreadBody, ThreadDetail,
  ThreadPage, ThreadView, UndoView,
} from "./types.ts";

/** A refusal in the daemon's own words. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

/** Nobody answered at all. */
export class NetworkError extends Error {}

/** No request of a page on the same machine takes longer than this. */
const PATIENCE_MS = 15_000;
/** A whole output may be large. */
const LONG_PATIENCE_MS = 120_000;

export class Api {
  private readonly bearer: string;

  constructor(bearer: string) {
    this.bearer = bearer;
  }

  state = (): Promise<State> => this.get("/api/state");
  calls = (query: string): Promise<CallView[]> => this.get(`/api/calls?${query}`);
  call = (id: string): Promise<CallDetail> => this.get(`/api/calls/${encodeURIComponent(id)}`);
  approval = (id: string): Promise<ApprovalView> => this.get(`/api/approvals/${encodeURIComponent(id)}`);
  cancel = (id: string): Promise<Forced> => this.post(`/api/calls/${encodeURIComponent(id)}/cancel`);
  complete = (id: string, body: CompleteBody): Promise<Forced> => this.post(`/api/calls/${encodeURIComponent(id)}/complete`, body);
  answer = (id: string, body: AnswerBody): Promise<ApprovalView> => this.post(`/api/approvals/${encodeURIComponent(id)}/answer`, body);
  edit = (id: string, body: EditBody): Promise<EditView> => this.post(`/api/approvals/${encodeURIComponent(id)}/edit`, body);
  proposal = (id: string): Promise<ProposalView> => this.get(`/api/approvals/${encodeURIComponent(id)}/proposal`);
  allowLow = (approvals: readonly Seen[]): Promise<AllowedLow[]> => this.post("/api/approvals/allow-low", { approvals });
  rules = (workspace?: string): Promise<RulesView> => this.get(`/api/rules${workspace ? `?${new URLSearchParams({ workspace })}` : ""}`);
  makeRule = (rule: RuleBody): Promise<RuleView> => this.post("/api/rules", rule);
  revoke = (rule: string): Promise<unknown> => request("DELETE", `/api/rules/${encodeURIComponent(rule)}`, undefined, this.bearer);
  testCall = (body: TestBody): Promise<TestView> => this.post("/api/rules/test", body);
  propose = (rule: RuleBody, approval: string | null = null): Promise<ProposedView> => this.post("/api/rules/propose", { rule, approval });
  folders = (): Promise<FolderView[]> => this.get("/api/folders");
  trust = (folder: string, config: string | null): Promise<FolderView> => this.post("/api/folders/trust", { folder, config });
  distrust = (folder: string): Promise<FolderView> => this.post("/api/folders/distrust", { folder });
  undoing = (id: string): Promise<UndoView> => this.get(`/api/undo/${encodeURIComponent(id)}`);
  undo = (id: string, digest: string): Promise<UndoView> => this.post(`/api/undo/${encodeURIComponent(id)}`, { digest });
  terminals = (query = ""): Promise<TerminalView[]> => this.get(`/api/terminals?${query}`);
  terminal = (id: string): Promise<TerminalDetail> => this.get(of(id));
  openTerminal = (body: OpenBody): Promise<TerminalView> => this.post("/api/terminals", body);
  closeTerminal = (id: string): Promise<Closed> => this.post(`${of(id)}/close`);
  takeTerminal = (id: string): Promise<unknown> => this.post(`${of(id)}/take`, {});
  releaseTerminal = (id: string): Promise<unknown> => this.post(`${of(id)}/release`, {});
  pressIn = (id: string, keys: readonly string[]): Promise<unknown> => this.post(`${of(id)}/input`, { keys });
  searchIn = (id: string, query: URLSearchParams): Promise<Found> => this.get(`${of(id)}/search?${query}`);
  /** As bytes: an address cannot carry the bearer, so the page fetches what a person saves. */
  outputOf = (id: string, query: URLSearchParams): Promise<Blob> => this.blob(`${of(id)}/output?${query}`);

  threads = (query = ""): Promise<ThreadView[]> => this.get(`/api/threads?${query}`);
  thread = (id: string): Promise<ThreadDetail> => this.get(ofThread(id));
  messages = (id: string, before: number, limit: number): Promise<ThreadPage> => this.get(`${ofThread(id)}/messages?${new URLSearchParams({ before: String(before), limit: String(limit) })}`);
  openThread = (body: ThreadBody): Promise<ThreadView> => this.post("/api/threads", body);
  renameThread = (id: string, title: string): Promise<ThreadView> => request("PATCH", ofThread(id), { title }, this.bearer);
  deleteThread = (id: string): Promise<unknown> => request("DELETE", ofThread(id), undefined, this.bearer);
  prompt = (id: string, body: PromptBody): Promise<Prompted> => this.post(`${ofThread(id)}/prompt`, body);
  fork = (id: string, body: ForkBody): Promise<ThreadView> => this.post(`${ofThread(id)}/fork`, body);
  choose = (id: string, body: SettingBody): Promise<unknown> => this.post(`${ofThread(id)}/setting`, body);
  sendQueued = (id: string, message: string): Promise<unknown> => this.post(`${ofThread(id)}/queue/${encodeURIComponent(message)}/send`);
  dropQueued = (id: string, message: string): Promise<unknown> => request("DELETE", `${ofThread(id)}/queue/${encodeURIComponent(message)}`, undefined, this.bearer);
  cancelOperation = (id: string): Promise<{ won: boolean }> => this.post(`/api/operations/${encodeURIComponent(id)}/cancel`);
  operation = (id: string): Promise<OperationDetail> => this.get(`/api/operations/${encodeURIComponent(id)}`);
  cancelActivity = (operation: string, activity: string): Promise<unknown> => this.post(`/api/operations/${encodeURIComponent(operation)}/activities/${encodeURIComponent(activity)}/cancel`);
  exportThread = (id: string, format: "md" | "json"): Promise<Blob> => this.blob(`${ofThread(id)}/export?format=${format}`);
  importThread = (thread: unknown): Promise<ThreadView> => this.post("/api/threads/import", thread);
  agents = (): Promise<AgentView[]> => this.get("/api/agents");
  login = (agent: string, method: string): Promise<unknown> => this.post(`/api/agents/${encodeURIComponent(agent)}/login`, { method });
  search = (q: string, limit: number): Promise<SearchView> => this.get(`/api/search?${new URLSearchParams({ q, limit: String(limit) })}`);
  image = (sha: string): Promise<Blob> => this.blob(`/api/images/${encodeURIComponent(sha)}`);

  /** A socket that carries the bearer where a browser lets it: as a subprotocol. */
  socket(path: string): WebSocket {
    const url = new URL(path, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return new WebSocket(url, ["handrail", `bearer.${this.bearer}`]);
  }

  private async blob(path: string): Promise<Blob> {
    return (await answered("GET", path, undefined, this.bearer, LONG_PATIENCE_MS)).blob();
  }

  private get<T>(path: string): Promise<T> {
    return request<T>("GET", path, undefined, this.bearer);
  }

  private post<T>(path: string, body?: unknown): Promise<T> {
    return request<T>("POST", path, body, this.bearer);
  }
}

/** Exchanges a one-time code for a bearer. */
export async function signIn(code: string): Promise<string> {
  return (await request<SignedIn>("POST", "/api/sign-in", { code })).bearer;
}

function of(terminal: string): string {
  return `/api/terminals/${encodeURIComponent(terminal)}`;
}

function ofThread(thread: string): string {
  return `/api/threads/${encodeURIComponent(thread)}`;
}

async function request<T>(method: string, path: string, body?: unknown, bearer?: string): Promise<T> {
  const response = await answered(method, path, body, bearer, PATIENCE_MS);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function answered(method: string, path: string, body: unknown, bearer: string | undefined, patience: number): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method, headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(patience) };
  if (body !== undefined) init.body = JSON.stringify(body);
  const response = await fetch(path, init).catch((error: unknown) => {
    throw new NetworkError(String(error));
  });
  if (!response.ok) throw new ApiError(response.status, await detail(response));
  return response;
}

async function detail(response: Response): Promise<string> {
  const said: unknown = await response.json().catch(() => null);
  if (said && typeof said === "object" && "detail" in said && typeof said.detail === "string") return said.detail;
  return `The daemon refused this with status ${response.status}.`;
}
