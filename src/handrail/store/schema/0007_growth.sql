-- Runs of events that were removed because of their age. `chain` is the hash of the last one, so that the chain can be
-- verified across the gap. The JournalCompacted event that recorded the run stays as long as its row.
CREATE TABLE compacted (
    first        INTEGER NOT NULL,
    last         INTEGER PRIMARY KEY,
    chain        TEXT    NOT NULL,
    events       INTEGER NOT NULL,
    recorded_seq INTEGER NOT NULL REFERENCES events (seq)
) STRICT;

CREATE INDEX compacted_by_record ON compacted (recorded_seq);

-- Every start and compaction look for these. Without the indices they scan the journal, or all calls.
CREATE INDEX events_of_starts ON events (seq) WHERE kind = 'DaemonStarted';
CREATE INDEX events_of_compactions ON events (seq) WHERE kind = 'JournalCompacted';
CREATE INDEX calls_unwinding ON calls (opened_seq) WHERE ending IS NOT NULL AND stopped_at IS NULL;
CREATE INDEX operations_in_order ON operations (opened_seq);
CREATE INDEX approvals_open_in_order ON approvals (opened_seq)
    WHERE answered_at IS NULL AND withdrawn_at IS NULL AND expired_at IS NULL;

DROP INDEX terminals_with_output;
CREATE INDEX terminals_with_output ON terminals (id) WHERE ended_at IS NOT NULL AND forgotten_at IS NULL;

DROP INDEX messages_open;
CREATE INDEX messages_open ON messages (thread, n) WHERE ended_at IS NULL OR queued;
