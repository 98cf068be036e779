-- Lists count a command that ended with an exit code other than 0, or by a signal, as failed.
CREATE INDEX calls_failed_exit ON calls (opened_seq) WHERE (exit_code <> 0 OR signal IS NOT NULL);
