"""The daemon: composition root. Builds every part in order and owns the root task group."""
