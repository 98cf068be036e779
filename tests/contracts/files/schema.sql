-- handrail.db: user_version 15

CREATE INDEX activities_of_thread ON activities (thread);

CREATE INDEX activities_open ON activities (operation) WHERE ended_at IS NULL;

CREATE INDEX approvals_in_order ON approvals (opened_seq);

CREATE INDEX approvals_open ON approvals (call)
    WHERE answered_at IS NULL AND withdrawn_at IS NULL AND expired_at IS NULL;

CREATE INDEX approvals_open_in_order ON approvals (opened_seq)
    WHERE answered_at IS NULL AND withdrawn_at IS NULL AND expired_at IS NULL;

CREATE INDEX calls_alike ON calls (tool, title, opened_seq) WHERE ending = 'done';

CREATE INDEX calls_by_client ON calls (client, opened_seq);

CREATE INDEX calls_by_ending ON calls (ending, opened_seq) WHERE ending IS NOT NULL;

CREATE INDEX calls_by_operation ON calls (operation, opened_seq) WHERE operation IS NOT NULL;

CREATE INDEX calls_by_thread ON calls (thread, opened_seq) WHERE thread IS NOT NULL;

CREATE INDEX calls_by_tool ON calls (tool, opened_seq);

CREATE INDEX calls_failed_exit ON calls (opened_seq) WHERE (exit_code <> 0 OR signal IS NOT NULL);

CREATE INDEX calls_open ON calls (opened_seq) WHERE ending IS NULL;

CREATE INDEX calls_unwinding ON calls (opened_seq) WHERE ending IS NOT NULL AND stopped_at IS NULL;

CREATE INDEX compacted_by_record ON compacted (recorded_seq);

CREATE INDEX events_of_compactions ON events (seq) WHERE kind = 'JournalCompacted';

CREATE INDEX events_of_pauses ON events (seq) WHERE kind IN ('AgentsPaused', 'AgentsResumed');

CREATE INDEX events_of_pins ON events (seq) WHERE kind IN ('ServerToolsPinned');

CREATE INDEX events_of_rules ON events (seq)
    WHERE kind IN ('RuleAdded', 'RuleRemoved', 'RuleDisabled', 'RuleEnabled', 'RulesOrdered', 'FolderTrusted', 'FolderDistrusted');

CREATE INDEX events_of_starts ON events (seq) WHERE kind = 'DaemonStarted';

CREATE INDEX file_changes_by_call ON file_changes (call, seq);

CREATE INDEX file_changes_by_path ON file_changes (path, seq);

CREATE UNIQUE INDEX messages_in_order ON messages (thread, n);

CREATE INDEX messages_open ON messages (thread, n) WHERE ended_at IS NULL OR queued;

CREATE INDEX old_contents_by_age ON old_contents (used_at, sha, bytes);

CREATE INDEX operations_by_thread ON operations (thread, opened_seq) WHERE thread IS NOT NULL;

CREATE INDEX operations_in_order ON operations (opened_seq);

CREATE INDEX operations_open ON operations (opened_seq) WHERE ended_at IS NULL;

CREATE INDEX terminals_by_kind ON terminals ("of", opened_seq);

CREATE INDEX terminals_in_order ON terminals (opened_seq);

CREATE INDEX terminals_running ON terminals (opened_seq) WHERE ended_at IS NULL;

CREATE INDEX terminals_with_output ON terminals (id) WHERE ended_at IS NOT NULL AND forgotten_at IS NULL;

CREATE INDEX threads_by_update ON threads (updated_at, opened_seq);

CREATE INDEX typed_by_terminal ON typed (terminal, seq);

CREATE TABLE activities (
    operation  TEXT NOT NULL,
    id         TEXT NOT NULL,
    thread     TEXT NOT NULL,
    parent     TEXT,
    sort       TEXT NOT NULL,
    title      TEXT NOT NULL,
    tool_call  TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    how        TEXT,
    "by"       TEXT NOT NULL DEFAULT '',
    detail     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (operation, id)
) STRICT;

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
, expired_at INTEGER, edited INTEGER NOT NULL DEFAULT 0) STRICT;

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
, exit_code INTEGER, signal TEXT, asked_at INTEGER, reviewed_at INTEGER) STRICT;

CREATE TABLE compacted (
    first        INTEGER NOT NULL,
    last         INTEGER PRIMARY KEY,
    chain        TEXT    NOT NULL,
    events       INTEGER NOT NULL,
    recorded_seq INTEGER NOT NULL REFERENCES events (seq)
) STRICT;

CREATE TABLE credentials (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    workspace  TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    issued_at  INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE events (
    seq          INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    kind         TEXT    NOT NULL,
    payload      TEXT,
    payload_hash BLOB    NOT NULL,
    chain        BLOB    NOT NULL
) STRICT;

CREATE TABLE file_changes (
    seq      INTEGER NOT NULL REFERENCES events (seq),
    place    INTEGER NOT NULL,
    call     TEXT NOT NULL,
    path     TEXT NOT NULL,
    "before" TEXT,
    "after"  TEXT,
    mode     INTEGER,
    made     TEXT NOT NULL DEFAULT '[]',
    at       INTEGER NOT NULL,
    PRIMARY KEY (seq, place)
) STRICT;

CREATE TABLE folders (
    folder     TEXT PRIMARY KEY,
    config     TEXT,
    "by"       TEXT NOT NULL,
    trusted_at INTEGER NOT NULL
) STRICT;

CREATE TABLE growths (
    message TEXT NOT NULL,
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    text    TEXT NOT NULL,
    PRIMARY KEY (message, n, at)
) STRICT;

CREATE TABLE mcp_servers (
    name TEXT PRIMARY KEY,
    tools TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    seq INTEGER NOT NULL
) STRICT;

CREATE TABLE messages (
    id         TEXT PRIMARY KEY,
    thread     TEXT NOT NULL,
    n          INTEGER NOT NULL,
    role       TEXT NOT NULL,
    agent      TEXT NOT NULL,
    operation  TEXT,
    queued     INTEGER NOT NULL DEFAULT 0,
    opened_at  INTEGER NOT NULL,
    ended_at   INTEGER,
    stop       TEXT
) STRICT;

CREATE TABLE old_contents (
    sha     TEXT PRIMARY KEY,
    used_at INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE operations (
    id           TEXT PRIMARY KEY,
    thread       TEXT,
    client       TEXT NOT NULL,
    workspace    TEXT,
    opened_at    INTEGER NOT NULL,
    ended_at     INTEGER,
    cancelled_by TEXT,
    stop         TEXT,
    error        TEXT NOT NULL DEFAULT '',
    opened_seq   INTEGER NOT NULL REFERENCES events (seq)
, ended_seq INTEGER REFERENCES events (seq)) STRICT;

CREATE TABLE parts (
    message TEXT NOT NULL,
    n       INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    text    TEXT NOT NULL,
    data    TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (message, n)
) STRICT;

CREATE TABLE rule_uses (
    rule         TEXT PRIMARY KEY,
    hits         INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    last_call    TEXT NOT NULL
) STRICT;

CREATE TABLE rules (
    id         TEXT PRIMARY KEY,
    rule       TEXT NOT NULL,
    "by"       TEXT NOT NULL,
    approval   TEXT,
    added_at   INTEGER NOT NULL,
    removed_at INTEGER,
    removed_by TEXT,
    added_seq  INTEGER NOT NULL REFERENCES events (seq)
) STRICT;

CREATE TABLE sessions (
    thread   TEXT NOT NULL,
    agent    TEXT NOT NULL,
    session  TEXT NOT NULL,
    upto     INTEGER NOT NULL DEFAULT 0,
    bound_at INTEGER NOT NULL,
    PRIMARY KEY (thread, agent)
) STRICT, WITHOUT ROWID;

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
, "of" TEXT NOT NULL DEFAULT 'command', owner_person INTEGER, owner_name TEXT, owner_workspace TEXT, argv TEXT NOT NULL DEFAULT '[]', cols INTEGER NOT NULL DEFAULT 80, "rows" INTEGER NOT NULL DEFAULT 24, nonce TEXT NOT NULL DEFAULT '', taken_by TEXT, taken_holds INTEGER NOT NULL DEFAULT 0, asked_prompt TEXT, asked_sure TEXT, asked_secret INTEGER NOT NULL DEFAULT 0, asked_at INTEGER, forgotten_at INTEGER) STRICT;

CREATE TABLE thread_state (
    thread TEXT NOT NULL,
    name   TEXT NOT NULL,
    data   TEXT NOT NULL,
    PRIMARY KEY (thread, name)
) STRICT;

CREATE TABLE threads (
    id          TEXT PRIMARY KEY,
    workspace   TEXT,
    title       TEXT NOT NULL,
    titled_by   TEXT NOT NULL,
    agent       TEXT NOT NULL,
    forked_from TEXT,
    forked_at   TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    opened_seq  INTEGER NOT NULL REFERENCES events (seq)
) STRICT;

CREATE TABLE titles (
    thread TEXT NOT NULL,
    seq    INTEGER NOT NULL REFERENCES events (seq),
    PRIMARY KEY (thread, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE typed (
    seq      INTEGER PRIMARY KEY REFERENCES events (seq),
    terminal TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    "by"     TEXT    NOT NULL,
    person   INTEGER NOT NULL,
    text     TEXT,
    "offset" INTEGER NOT NULL
) STRICT;

CREATE TABLE undos (
    id    TEXT PRIMARY KEY,
    calls TEXT NOT NULL,
    "by"  TEXT NOT NULL,
    at    INTEGER NOT NULL,
    seq   INTEGER NOT NULL REFERENCES events (seq)
) STRICT;

CREATE TABLE upkeep (due INTEGER NOT NULL) STRICT;

-- words.db: user_version 2

CREATE INDEX texts_by_thread ON texts (thread) WHERE thread IS NOT NULL;

CREATE TABLE texts (
    id       INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,
    thread   TEXT,
    message  TEXT,
    call     TEXT,
    terminal TEXT,
    at       INTEGER NOT NULL,
    room     TEXT NOT NULL,
    title    TEXT NOT NULL,
    text     TEXT NOT NULL
) STRICT;

CREATE TABLE upto (seq INTEGER NOT NULL) STRICT;

CREATE VIRTUAL TABLE words USING fts5 (
    room, title, text,
    content = 'texts', content_rowid = 'id', prefix = '2', columnsize = 0,
    tokenize = "unicode61 remove_diacritics 2 tokenchars '_'"
);
