"""The store: the event journal, the tables derived from it, and integrity checks for both.

Of the rest of Handrail it imports only `errors`.
"""

EXPORTS = {
    "actor": (
        "Actor CLIENT EDITOR EDITOR_PLACE HANDRAIL NOBODY OPERATION PERSON actor_from_text agent_actor approval_actor person_on "
        "rule_actor tool_actor"
    ),
    "anchor": "check_anchor",
    "approvals": "ApprovalRecord",
    "bell": "Bell",
    "blobs": "BlobRetention BlobUnavailable Blobs ImageRetention image_mime",
    "call_filter": "add_field",
    "call_table": "CallTable Sort",
    "calls": "CallHistory CallRecord ServerCounts Status TypicalDuration",
    "credentials": "CredentialRecord",
    "debounce": "Debounce",
    "events": (
        "ActivityEnded ActivityStarted AgentEnded AgentsPaused AgentsResumed ApprovalAnswered ApprovalExpired ApprovalOpened "
        "ApprovalWithdrawn CallClientBack CallClientGone CallHandedBack CallOpened CallSettled CallStarted CallStopped "
        "CredentialIssued CredentialRevoked DaemonStarted DaemonStopped EditorPaired EditorRefused EditorRevoked "
        "Entry Event FilesRestored "
        "FolderDistrusted FolderTrusted OperationEnded OperationOpened PersonSignedIn PolicyAccepted "
        "RuleAdded RuleDisabled RuleEnabled RuleRemoved RulesOrdered ServerEnded SignInRevoked TerminalAsked TerminalClosed TerminalEnded TerminalForgotten "
        "TerminalOpened TerminalReleased TerminalTaken TerminalTyped TerminalWentOn ThreadOpened "
        "ThreadRenamed"
    ),
    "export": "Export ExportedMessage ExportedPart ExportedThread NotImportable export import_thread",
    "export_markdown": "as_markdown",
    "file_changes": "ChangeRecord UndoRecord",
    "hash_chain": "Link",
    "integrity": "backup check_compactions has_event verify",
    "journal": "Journal open_journal",
    "journal_retention": "JournalRetention",
    "mcp_servers": "PinnedServer ServerEnded ServerStarted ServerToolsPinned",
    "old_contents": "add_contents open_old_contents",
    "operations": "ActivityRecord OperationHistory",
    "pauses": "PauseRecord",
    "query": "Where",
    "records": "Records open_records",
    "rule_replay": "RuleReplay replay_rules",
    "rules": "FolderRecord RULE_KINDS RuleEvent RuleRecord RuleUse apply_to_rules encode_rule",
    "search_index": "Hits SearchHit SearchIndex open_index",
    "search_query": "BadQuery SearchQuery Term parse_query",
    "terminals": "TerminalRecord TypedRecord",
    "threads.live_thread": "",
    "threads.message": "Message Part clean clean_json",
    "threads.parts": (
        "CallData CallKind CallStatus Content ErrorData FileData ImageData Location PlanData PlanEntry "
        "RawData"
    ),
    "threads.thread_records": "AgentEnded AgentStarted MessagePart MessageRecord Page SessionRecord Snapshot ThreadRecord",
    "threads.threads": "Threads",
    "values": (
        "Action ActivityEnding ActivityKind AnswerKind Assurance Caller Certainty Claim CommandPreview "
        "Comment DiffPreview Effect Ending FileChange FormPreview Handover InputPreview Json Owner PartKind "
        "PathPreview Position Preview ProcessSeen PushSubscription Receipt Result ResultPreview Risk Role Rule Scope "
        "SignalSent Stop TerminalKind Verdict"
    ),
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
