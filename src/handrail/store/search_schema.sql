-- A file with another number is recreated.
PRAGMA user_version = 2;

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

CREATE INDEX texts_by_thread ON texts (thread) WHERE thread IS NOT NULL;

CREATE VIRTUAL TABLE words USING fts5 (
    room, title, text,
    content = 'texts', content_rowid = 'id', prefix = '2', columnsize = 0,
    tokenize = "unicode61 remove_diacritics 2 tokenchars '_'"
);

CREATE TABLE upto (seq INTEGER NOT NULL) STRICT;
INSERT INTO upto VALUES (0);
