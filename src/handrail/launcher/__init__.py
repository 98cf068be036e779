"""The launcher: the one way in which the daemon starts programs and helpers, apart from what the keeper runs."""

EXPORTS = {
    "child": "Child LOST LaunchError prestart spawn_detached start_function start_program",
    "child_guard": "refuse_other_children",
    "trusted_programs": "SYSTEM_FOLDERS find_program find_untrusted",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
