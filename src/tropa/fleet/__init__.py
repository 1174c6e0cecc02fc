"""Many machines: the journal on Postgres holds the truth, a queue says which worker goes on next."""

from tropa.fleet.queue import Queue, WorkerRow, agent_of, connect_queue
from tropa.fleet.worker import HEARTBEAT, Worker

__all__ = ["HEARTBEAT", "Queue", "Worker", "WorkerRow", "agent_of", "connect_queue"]
