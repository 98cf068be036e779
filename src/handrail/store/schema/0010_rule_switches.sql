-- Rules can be disabled, enabled and ordered: the index covers these events too.
DROP INDEX events_of_rules;
CREATE INDEX events_of_rules ON events (seq)
    WHERE kind IN ('RuleAdded', 'RuleRemoved', 'RuleDisabled', 'RuleEnabled', 'RulesOrdered', 'FolderTrusted', 'FolderDistrusted');
