-- Small old contents of files, kept for undo. They are committed with the event that precedes the change of the file, so
-- that a change needs no further sync of the disk. Larger ones are files in `blobs`. `used_at` is in milliseconds since 1970.
CREATE TABLE old_contents (
    sha     TEXT PRIMARY KEY,
    used_at INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

-- Retention lists all contents every hour. The index has what it needs, so the contents are not read.
CREATE INDEX old_contents_by_age ON old_contents (used_at, sha, bytes);
