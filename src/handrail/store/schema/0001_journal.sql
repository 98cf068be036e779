-- Every event, in order. A payload may be erased; its hash and its chain link stay.
CREATE TABLE events (
    seq          INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    payload      TEXT,
    payload_hash BLOB    NOT NULL,
    chain        BLOB    NOT NULL
) STRICT;

-- The tables below are derived from events, for queries; each is written in its event's transaction.
-- They refer to events, never to each other: no event may fail because an earlier one was never written.
-- Status is not stored: queries derive it (calls.py).
CREATE TABLE calls (
    id             TEXT NOT NULL UNIQUE,
    tool           TEXT NOT NULL,
    title          TEXT NOT NULL,
    door           TEXT NOT NULL,
    client         TEXT NOT NULL,
    caller_key     TEXT NOT NULL,
    workspace      TEXT,
    thread         TEXT,
    operation      TEXT,
    assurance      TEXT NOT NULL,
    approval       TEXT,
    terminal       TEXT,
    allowed_by     TEXT,
    ending         TEXT,
    settled_by     TEXT,
    message        TEXT,
    opened_at      INTEGER NOT NULL,
    started_at     INTEGER,
    handed_back_at INTEGER,
    client_gone_at INTEGER,
    settled_at     INTEGER,
    stopped_at     INTEGER,
    opened_seq     INTEGER PRIMARY KEY REFERENCES events (seq),
    started_seq    INTEGER REFERENCES events (seq),
    settled_seq    INTEGER REFERENCES events (seq),
    stopped_seq    INTEGER REFERENCES events (seq)
) STRICT;

CREATE INDEX calls_open ON calls (opened_seq) WHERE ending IS NULL;
CREATE INDEX calls_by_ending ON calls (ending, opened_seq) WHERE ending IS NOT NULL;
CREATE INDEX calls_by_tool ON calls (tool, opened_seq);
CREATE INDEX calls_by_client ON calls (client, opened_seq);

CREATE TABLE approvals (
    id            TEXT PRIMARY KEY,
    call          TEXT NOT NULL,
    digest        TEXT NOT NULL,
    risk          TEXT NOT NULL,
    answer        TEXT,
    answered_by   TEXT,
    reason        TEXT,
    withdrawn_why TEXT,
    opened_at     INTEGER NOT NULL,
    answered_at   INTEGER,
    withdrawn_at  INTEGER,
    opened_seq    INTEGER NOT NULL REFERENCES events (seq),
    answered_seq  INTEGER REFERENCES events (seq)
) STRICT;

CREATE INDEX approvals_in_order ON approvals (opened_seq);
CREATE INDEX approvals_open ON approvals (call) WHERE answered_at IS NULL AND withdrawn_at IS NULL;

CREATE TABLE terminals (
    id        TEXT PRIMARY KEY,
    call      TEXT,
    name      TEXT NOT NULL,
    cwd       TEXT NOT NULL,
    pid       INTEGER NOT NULL,
    exit_code INTEGER,
    signal    TEXT,
    bytes     INTEGER,
    lost      INTEGER NOT NULL DEFAULT 0,
    opened_at INTEGER NOT NULL,
    ended_at  INTEGER,
    opened_seq INTEGER NOT NULL REFERENCES events (seq)
) STRICT;

CREATE INDEX terminals_in_order ON terminals (opened_seq);

CREATE TABLE credentials (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    issued_at  INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;
