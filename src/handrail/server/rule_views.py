"""Domain into wire: how rules, folders and what would be decided look to people's programs.

Translations only: what holds, and why, is the gate's to say.
"""

from handrail.gate.folders import Folder
from handrail.server.rule_wire import FolderView
from handrail.store.records import FolderRecord


def folder_view(folder: Folder, record: FolderRecord | None) -> FolderView:
    return FolderView(
        folder=folder.folder,
        trusted=folder.trusted,
        trusted_at=record.trusted_at if record else None,
        by=record.by if record else None,
        config=folder.config,
        problem=folder.problem,
    )
