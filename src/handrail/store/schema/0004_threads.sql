-- Conversations. What is said is a flow and no fact: deleting a thread deletes it.
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

CREATE INDEX threads_by_update ON threads (updated_at, opened_seq);

-- The events that hold a thread's titles: these payloads are erased with it.
CREATE TABLE titles (
    thread TEXT NOT NULL,
    seq    INTEGER NOT NULL REFERENCES events (seq),
    PRIMARY KEY (thread, seq)
) STRICT, WITHOUT ROWID;

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
CREATE INDEX messages_open ON messages (thread) WHERE ended_at IS NULL OR queued;

CREATE TABLE parts (
    message TEXT NOT NULL,
    n       INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    text    TEXT NOT NULL,
    data    TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (message, n)
) STRICT;

-- What an open part's text has grown by since it was written whole. Gone when its message ends.
CREATE TABLE growths (
    message TEXT NOT NULL,
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    text    TEXT NOT NULL,
    PRIMARY KEY (message, n, at)
) STRICT;

-- What an agent says of a conversation as a whole: modes, options, commands, usage, plan.
CREATE TABLE thread_state (
    thread TEXT NOT NULL,
    name   TEXT NOT NULL,
    data   TEXT NOT NULL,
    PRIMARY KEY (thread, name)
) STRICT;

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

-- Something was deleted since the file was last written anew (upkeep.py).
CREATE TABLE upkeep (due INTEGER NOT NULL) STRICT;
INSERT INTO upkeep VALUES (0);
