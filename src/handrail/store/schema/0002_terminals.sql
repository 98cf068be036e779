-- Terminals get a kind, an owner, a person in control and a prompt. Older ones belong to calls; their owner is unknown.
ALTER TABLE terminals ADD COLUMN "of" TEXT NOT NULL DEFAULT 'command';
ALTER TABLE terminals ADD COLUMN owner_person INTEGER;
ALTER TABLE terminals ADD COLUMN owner_name TEXT;
ALTER TABLE terminals ADD COLUMN owner_workspace TEXT;
ALTER TABLE terminals ADD COLUMN argv TEXT NOT NULL DEFAULT '[]';
ALTER TABLE terminals ADD COLUMN cols INTEGER NOT NULL DEFAULT 80;
ALTER TABLE terminals ADD COLUMN "rows" INTEGER NOT NULL DEFAULT 24;
ALTER TABLE terminals ADD COLUMN nonce TEXT NOT NULL DEFAULT '';
ALTER TABLE terminals ADD COLUMN taken_by TEXT;
ALTER TABLE terminals ADD COLUMN taken_holds INTEGER NOT NULL DEFAULT 0;
ALTER TABLE terminals ADD COLUMN asked_prompt TEXT;
ALTER TABLE terminals ADD COLUMN asked_sure TEXT;
ALTER TABLE terminals ADD COLUMN asked_secret INTEGER NOT NULL DEFAULT 0;
ALTER TABLE terminals ADD COLUMN asked_at INTEGER;
ALTER TABLE terminals ADD COLUMN forgotten_at INTEGER;

CREATE INDEX terminals_by_kind ON terminals ("of", opened_seq);
CREATE INDEX terminals_running ON terminals (opened_seq) WHERE ended_at IS NULL;
CREATE INDEX terminals_with_output ON terminals (ended_at) WHERE ended_at IS NOT NULL AND forgotten_at IS NULL;

-- Input by terminal; no text if the terminal did not echo it.
CREATE TABLE typed (
    seq      INTEGER PRIMARY KEY REFERENCES events (seq),
    terminal TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    "by"     TEXT    NOT NULL,
    person   INTEGER NOT NULL,
    text     TEXT,
    "offset" INTEGER NOT NULL
) STRICT;

CREATE INDEX typed_by_terminal ON typed (terminal, seq);
