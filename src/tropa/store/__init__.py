"""The store: threads, inbox and trails in one handle."""

from tropa.store.store import Store, connect, open
from tropa.store.thread import Thread

__all__ = ["Store", "Thread", "connect", "open"]
