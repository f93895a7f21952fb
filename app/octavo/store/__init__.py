"""Chats on disk: one SQLite database, one thread that writes, readers of their own. Knows no Qt and no engine."""

from octavo.store.errors import NewerDatabase, ReadOnlyStore, StoreDamaged, StoreError, StoreFull, StoreInUse
from octavo.store.store import Store

__all__ = ["NewerDatabase", "ReadOnlyStore", "Store", "StoreDamaged", "StoreError", "StoreFull", "StoreInUse"]
