"""The node's memory: one SQLite file, durable across kill -9."""

from nodeagent.store.database import StoreError
from nodeagent.store.records import MOST_DECISIONS, Store
from nodeagent.store.resources import Batch, Change, Compacted, Key, Resources

__all__ = ["MOST_DECISIONS", "Batch", "Change", "Compacted", "Key", "Resources", "Store", "StoreError"]
