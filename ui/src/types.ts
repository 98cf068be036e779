/**
 * Short names for the wire's types. They are generated (wire.ts) from the server's own description;
 * nothing here repeats a field.
 */
import type { components } from "./wire.ts";

type Schemas = components["schemas"];

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
export type AnswerBody = Schemas["AnswerBody"];
export type Forced = Schemas["Forced"];
export type Restart = Schemas["Restart"];
export type SignedIn = Schemas["SignedIn"];

export type Caller = Schemas["Caller"];
export type Claim = Schemas["Claim"];
export type Receipt = Schemas["Receipt"];
export type Preview = NonNullable<CallDetail["preview"]>;
export type DiffPreview = Schemas["DiffPreview"];
export type CommandPreview = Schemas["CommandPreview"];
export type Json = CallDetail["input"];
export type InputPreview = Schemas["InputPreview"];

export type TerminalView = Schemas["TerminalView"];
export type TerminalDetail = Schemas["TerminalDetail"];
export type Asks = Schemas["AsksView"];
export type Taken = Schemas["TakenView"];
export type Owner = Schemas["Owner"];
export type Command = Schemas["CommandView"];
export type Typed = Schemas["TypedView"];
export type Found = Schemas["FoundView"];
export type Closed = Schemas["Closed"];
export type OpenBody = Partial<Schemas["OpenBody"]>;
export type AttachState = Schemas["AttachState"];
export type AttachRefused = Schemas["AttachRefused"];
