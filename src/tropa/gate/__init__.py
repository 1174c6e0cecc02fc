"""The gate: what stands between a proposed call and the world."""

from tropa.gate.budget import Budget, Reservation, Spent, refuse_call, reserve, stop_before_ask
from tropa.gate.digest import call_digest, canonical, proposal_id, sha256
from tropa.gate.origins import Origin, trace
from tropa.gate.policy import ASK, RUN, Policy, Proposed, Ruling, ask_before_effects, refuse_effects
from tropa.gate.proposal import Proposal

__all__ = [
    "ASK",
    "RUN",
    "Budget",
    "Origin",
    "Policy",
    "Proposal",
    "Proposed",
    "Reservation",
    "Ruling",
    "Spent",
    "ask_before_effects",
    "call_digest",
    "canonical",
    "proposal_id",
    "refuse_call",
    "refuse_effects",
    "reserve",
    "sha256",
    "stop_before_ask",
    "trace",
]
