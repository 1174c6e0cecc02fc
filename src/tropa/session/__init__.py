"""The session: ask, call, note. Every operation is journaled here."""

from tropa.session.memory import Memory
from tropa.session.opening import Input, begin, reopen
from tropa.session.outcome import Run, Stopped
from tropa.session.record import CallRecord, ReplyRecord, RunRecord
from tropa.session.replaying import recorded
from tropa.session.session import Session, Watcher
from tropa.session.setup import Field, Migration, Setup
from tropa.session.view import load_record, proposals, run_of

__all__ = [
    "CallRecord",
    "Field",
    "Input",
    "Memory",
    "Migration",
    "ReplyRecord",
    "Run",
    "RunRecord",
    "Session",
    "Setup",
    "Stopped",
    "Watcher",
    "begin",
    "load_record",
    "proposals",
    "recorded",
    "reopen",
    "run_of",
]
