"""Conversations as files: to read (Markdown), and to take along and back in (JSON)."""

from handrail.store.export.exporting import export, import_thread
from handrail.store.export.markdown import as_markdown
from handrail.store.export.shape import Export, NotImportable

__all__ = ["Export", "NotImportable", "as_markdown", "export", "import_thread"]
