-- Conversations. What is said is a flow: parts grow in place, and are no facts; deleting a thread deletes them.
CREATE TABLE threads (
    id          TEXT PRIMARY KEY,
    workspace   TEXT,
    title       TEXT NOT NULL,
    agent       TEXT NOT NULL,
    forked_from TEXT,
    forked_at   TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    opened_seq  INTEGER NOT NULL REFERENCES events (seq)
) STRICT;

CREATE INDEX threads_by_update ON threads (updated_at);

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

CREATE UNIQUE INDEX messages_in_order ON messages (thread, n);
CREATE INDEX messages_open ON messages (thread) WHERE ended_at IS NULL;

-- `rev` grows with every change of a thread: whoever follows it asks for what is newer than what they have.
CREATE TABLE parts (
    message TEXT NOT NULL,
    n       INTEGER NOT NULL,
    thread  TEXT NOT NULL,
    kind    TEXT NOT NULL,
    text    TEXT NOT NULL,
    data    TEXT NOT NULL DEFAULT '{}',
    rev     INTEGER NOT NULL,
    PRIMARY KEY (message, n)
) STRICT, WITHOUT ROWID;

CREATE INDEX parts_by_rev ON parts (thread, rev);

-- What an agent says of a conversation as a whole: modes, options, commands, usage, plan.
CREATE TABLE thread_state (
    thread TEXT NOT NULL,
    name   TEXT NOT NULL,
    data   TEXT NOT NULL,
    rev    INTEGER NOT NULL,
    PRIMARY KEY (thread, name)
) STRICT, WITHOUT ROWID;

-- Under which id each agent keeps a conversation, and up to which message it knows it.
CREATE TABLE sessions (
    thread   TEXT NOT NULL,
    agent    TEXT NOT NULL,
    session  TEXT NOT NULL,
    upto     INTEGER NOT NULL DEFAULT 0,
    bound_at INTEGER NOT NULL,
    PRIMARY KEY (thread, agent)
) STRICT, WITHOUT ROWID;

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
) STRICT;

CREATE INDEX operations_open ON operations (opened_seq) WHERE ended_at IS NULL;
CREATE INDEX operations_by_thread ON operations (thread, opened_seq) WHERE thread IS NOT NULL;

-- Every word that was said, asked for or printed. Written by index.py, some time after the fact.
CREATE VIRTUAL TABLE words USING fts5 (
    text,
    kind UNINDEXED,
    thread UNINDEXED,
    message UNINDEXED,
    call UNINDEXED,
    workspace UNINDEXED,
    at UNINDEXED,
    tokenize = "unicode61 remove_diacritics 2 tokenchars '_'"
);

CREATE TABLE indexed (seq INTEGER NOT NULL) STRICT;
INSERT INTO indexed VALUES (0);
