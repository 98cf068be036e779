-- Threads. Message text is in no event: deleting a thread deletes it.
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

-- The events with a thread's titles: their payloads are erased when it is deleted.
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

-- Text appended to an open part since it was written as a whole. Removed when its message ends.
CREATE TABLE growths (
    message TEXT NOT NULL,
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    text    TEXT NOT NULL,
    PRIMARY KEY (message, n, at)
) STRICT;

-- Values of a thread as a whole: modes, options, commands, usage, plan.
CREATE TABLE thread_state (
    thread TEXT NOT NULL,
    name   TEXT NOT NULL,
    data   TEXT NOT NULL,
    PRIMARY KEY (thread, name)
) STRICT;

-- Each agent's session id for a thread, and the last message the agent knows.
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

-- due: content was deleted since the last VACUUM (writer.py, Upkeep).
CREATE TABLE upkeep (due INTEGER NOT NULL) STRICT;
INSERT INTO upkeep VALUES (0);
