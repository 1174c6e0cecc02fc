"""Many machines: the journal on Postgres holds the truth, a queue says which worker goes on next."""

from tropa.fleet.queue import Queue, WorkerRow
from tropa.fleet.worker import Worker

__all__ = ["Queue", "Worker", "WorkerRow"]
