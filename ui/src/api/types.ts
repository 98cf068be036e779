/** Short names for the types of the OpenAPI description, which are generated (wire.ts). */
import type { components } from "../wire.ts";

type Schemas = components["schemas"];
/** A request body: fields with a default may be left out. */
type Sent<Body, Needed extends keyof Body> = Pick<Body, Needed> & Partial<Omit<Body, Needed>>;

export type State = Schemas["State"];
export type LiveEntries = Schemas["LiveEntries"];
export type Entry = Schemas["Entry"];
export type Event = Entry["event"];
export type Kind = Event["kind"];
export type EventOf<K extends Kind> = Extract<Event, { kind: K }>;

export type CallView = Schemas["CallView"];
export type CallDetail = Schemas["CallDetail"];
export type Status = CallView["status"];
export type ApprovalView = Schemas["ApprovalView"];
export type Risk = ApprovalView["risk"];
export type Completion = Schemas["Completion"];
export type CompleteBody = Partial<Schemas["CompleteBody"]>;
export type AnswerBody = Sent<Schemas["AnswerBody"], "answer" | "digest">;
export type EditBody = Partial<Schemas["EditBody"]>;
export type EditView = Schemas["EditView"];
export type ProposalView = Schemas["ProposalView"];
export type PartRisk = Schemas["PartRisk"];
export type Seen = Schemas["Seen"];
export type AllowedLow = Schemas["AllowedLow"];
export type Usual = Schemas["Usual"];
export type Verdict = Schemas["Verdict"];
export type Effect = Verdict["effect"];
export type Comment = Schemas["Comment"];
export type PolicyView = Schemas["PolicyView"];
export type Restart = Schemas["Restart"];

export type Caller = Schemas["Caller"];
export type Claim = Schemas["Claim"];
export type Receipt = Schemas["Receipt"];
export type Preview = NonNullable<CallDetail["preview"]>;
export type DiffPreview = Schemas["DiffPreview"];
export type CommandPreview = Schemas["CommandPreview"];
export type Json = CallDetail["input"];
export type InputPreview = Schemas["InputPreview"];

export type Rule = Schemas["Rule"];
export type RuleBody = Partial<Schemas["RuleBody"]>;
export type RuleView = Schemas["RuleView"];
export type RulesView = Schemas["RulesView"];
export type Scope = Rule["scope"];
export type Suggestion = Omit<Schemas["Suggestion"], "rule"> & { readonly rule: RuleBody };
export type ProposedView = Schemas["ProposedView"];
export type TestBody = Partial<Omit<Schemas["TestBody"], "rule">> & { readonly rule?: RuleBody | null };
export type TestView = Schemas["TestView"];
export type FolderView = Schemas["FolderView"];
export type UndoView = Schemas["UndoView"];
export type UndoFile = Schemas["UndoFile"];

export type TerminalView = Schemas["TerminalView"];
export type TerminalDetail = Schemas["TerminalDetail"];
export type Asks = Schemas["AsksView"];
export type Taken = Schemas["TakenView"];
export type Owner = Schemas["Owner"];
export type Command = Schemas["CommandView"];
export type Typed = Schemas["TypedView"];
export type Found = Schemas["FoundView"];
export type OpenBody = Partial<Schemas["OpenBody"]>;
export type AttachState = Schemas["AttachState"];
export type AttachRefused = Schemas["AttachRefused"];

export type ThreadView = Schemas["ThreadView"];
export type ThreadFlow = Schemas["ThreadFlow"];
export type Growth = Schemas["Growth"];
export type Message = Schemas["MessageView"];
export type Part = Schemas["MessagePart"];
export type Stop = NonNullable<Message["stop"]>;
export type ThreadBody = Partial<Schemas["ThreadBody"]>;
export type PromptBody = Sent<Schemas["PromptBody"], "text">;
export type Picture = Schemas["ImageBody"];
export type ForkBody = Partial<Schemas["ForkBody"]>;
export type PushBody = Schemas["PushBody"];
export type SignedIn = Schemas["SignedIn"];
export type SignInView = Schemas["SignInView"];
export type SettingBody = Sent<Schemas["SettingBody"], "setting" | "value">;
export type OperationDetail = Schemas["OperationDetail"];
export type Activity = Schemas["ActivityView"];
export type EditorView = Schemas["EditorView"];
export type ClientView = Schemas["ClientView"];
export type TranscriptView = Schemas["TranscriptView"];
export type TranscriptDetail = Schemas["TranscriptDetail"];
export type SettingsView = Schemas["SettingsView"];
export type StopReceipt = Schemas["StopReceipt"];
export type KeysView = Schemas["KeysView"];
export type Provider = Schemas["KeyView"]["provider"];
export type AgentView = Schemas["AgentView"];
export type AgentSession = Schemas["AgentSessionView"];
export type AdoptBody = Schemas["AdoptBody"];
export type CallCounts = Schemas["CallCounts"];
export type SearchHit = Schemas["SearchHit"];
export type SearchView = Schemas["SearchView"];
