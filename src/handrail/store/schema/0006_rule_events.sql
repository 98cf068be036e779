-- The events from which rules and trusted folders are rebuilt at every start, without a scan of the journal.
CREATE INDEX events_of_rules ON events (seq)
    WHERE kind IN ('RuleAdded', 'RuleRemoved', 'FolderTrusted', 'FolderDistrusted');
