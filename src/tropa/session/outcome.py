"""How a run stands when it is handed back: done, waiting, stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

from tropa.events import RunStatus, Stop
from tropa.gate import Proposal
from tropa.model import Usage


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it stands now.

    `status` is `completed`, `waiting` (see `pending`), `stopped` (a limit, see `stop`), `failed` or `cancelled`. Only
    `stop == "answered"` is success. `answer` is the model's text; `output` the validated structured answer where a type
    was asked for. `usage` is the whole run's; `seconds` its working time.
    """

    thread: str
    status: RunStatus
    stop: Stop | None = None
    answer: str = ""
    output: object = None
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    seconds: float = 0.0
    pending: tuple[Proposal, ...] = ()
    error: str | None = None
    seq: int = 0
    """The event that started the run."""

    @property
    def ok(self) -> bool:
        """Whether the run ended with an answer."""
        return self.stop == "answered"


class Stopped(Exception):
    """A limit forbids the next request; the loop closes the run with this reason."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop)
        self.stop: Stop = stop
