"""Events: what the journal is made of, and the state that they fold into."""

from tropa.events.event import Event, NewEvent
from tropa.events.kinds import Decision, RunStatus, Stop, Verdict, event
from tropa.events.state import MESSAGE_KINDS, State, apply_field, fold, in_call_order, message_of

__all__ = [
    "MESSAGE_KINDS",
    "Decision",
    "Event",
    "NewEvent",
    "RunStatus",
    "State",
    "Stop",
    "Verdict",
    "apply_field",
    "event",
    "fold",
    "in_call_order",
    "message_of",
]
