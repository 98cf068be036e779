"""The gate: decides which calls run, asks people, runs the calls and fixes their outcomes."""

EXPORTS = {
    "approval": "Answer Approval format_age",
    "call": "Call Outcome new_id",
    "feedback": "describe_allow describe_edit",
    "gate": "Gate Reply Request",
    "operation": "Operation",
    "person_actions": "",
    "restore": "read_ended_call restore",
    "result_review": "HAS_RUN hide_message hide_output hide_result is_review",
    "risk": "Assessment CallAssessment READERS assess_call",
    "rules.accepted_policy": "AcceptedPolicy FoundPolicy",
    "rules.arguments": "flatten_arguments",
    "rules.explanation": "Explanation ListedRule Step explain",
    "rules.matching": "AGENT_WORK CLIENT_WORK",
    "rules.pause": "Pause",
    "rules.policy": "Policy describe_rule",
    "rules.policy_snapshot": "Baseline PolicyChange PolicySnapshot decode_baseline",
    "rules.rule_builder": "BadRule",
    "rules.rules": "Rules UnknownRule UserRules",
    "rules.suggestions": "RuleStatistics SuggestedRule measure_rule suggest_from_history suggest_rules",
    "rules.trust": "FolderTrust TrustedFolder",
    "shell.bash_reader": "RESERVED",
    "shell.reading_commands": "BUILTINS SCRIPTS find_git_reader is_reading_command",
    "shell.shell_parser": "Line Opaque PARTS_MAX PRINTERS Part parse",
    "tool": (
        "CallReport Image Plan Proposal ReceiptFacts Refusal Salvage Tool Toolbox UndoAction UndoFile UndoPlan "
        "UndoSubject Undoer UnknownEnd UnknownUndo"
    ),
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
