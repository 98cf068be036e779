-- Rules, their usage counts, and trusted folders.
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

CREATE TABLE rule_uses (
    rule         TEXT PRIMARY KEY,
    hits         INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    last_call    TEXT NOT NULL
) STRICT;

CREATE TABLE folders (
    folder     TEXT PRIMARY KEY,
    config     TEXT,
    "by"       TEXT NOT NULL,
    trusted_at INTEGER NOT NULL
) STRICT;

-- Approvals can expire, and an answer can edit the call.
ALTER TABLE approvals ADD COLUMN expired_at INTEGER;
ALTER TABLE approvals ADD COLUMN edited INTEGER NOT NULL DEFAULT 0;

DROP INDEX approvals_open;
CREATE INDEX approvals_open ON approvals (call)
    WHERE answered_at IS NULL AND withdrawn_at IS NULL AND expired_at IS NULL;

-- File changes by call, in order; an undo is stored like a call.
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

CREATE INDEX file_changes_by_call ON file_changes (call, seq);
CREATE INDEX file_changes_by_path ON file_changes (path, seq);

-- The calls, or earlier undos, that each undo reverted.
CREATE TABLE undos (
    id    TEXT PRIMARY KEY,
    calls TEXT NOT NULL,
    "by"  TEXT NOT NULL,
    at    INTEGER NOT NULL,
    seq   INTEGER NOT NULL REFERENCES events (seq)
) STRICT;

CREATE INDEX calls_by_thread ON calls (thread, opened_seq) WHERE thread IS NOT NULL;
CREATE INDEX calls_by_operation ON calls (operation, opened_seq) WHERE operation IS NOT NULL;
CREATE INDEX calls_alike ON calls (tool, title, opened_seq) WHERE ending = 'done';
