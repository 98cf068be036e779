-- Activities of operations, from agents that report them. Deleted with their thread.
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

CREATE INDEX activities_of_thread ON activities (thread);
CREATE INDEX activities_open ON activities (operation) WHERE ended_at IS NULL;

-- The OperationEnded event, which lists what was cancelled with the operation.
ALTER TABLE operations ADD COLUMN ended_seq INTEGER REFERENCES events (seq);
