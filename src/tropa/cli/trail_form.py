"""A trail as plain JSON, for `tropa trail show --json`."""

from __future__ import annotations

from tropa.cli.forms import run_form, usage_form
from tropa.messages import Json, JsonObject, encode
from tropa.session import Run
from tropa.trail import Trail, TrailCall, TrailRun, TrailStep


def trail_form(trail: Trail, run: Run, model: str) -> JsonObject:
    """The whole trail; `latest` is the latest run as it stands, `place` the number of an event."""
    return {
        "thread": trail.thread,
        "model": model,
        "events": len(trail.events),
        "latest": run_form(run),
        "runs": [_run(one) for one in trail.runs],
    }


def _run(run: TrailRun) -> JsonObject:
    return {
        "place": run.seq,
        "agent": run.name,
        "started": run.started,
        "dry": run.dry,
        "input": None if run.input is None else encode(run.input),
        "status": run.status,
        "stop": run.stop,
        "answer": run.answer,
        "error": run.error,
        "usage": usage_form(run.usage),
        "seconds": run.seconds,
        "steps": [_step(one) for one in run.steps],
    }


def _step(step: TrailStep) -> JsonObject:
    return {
        "number": step.number,
        "place": step.seq,
        "reasoning": step.message.reasoning,
        "text": step.message.text,
        "finish": step.finish,
        "closing": step.closing,
        "usage": usage_form(step.usage),
        "seconds": step.seconds,
        "notices": list[Json](step.notices),
        "calls": [_call(one) for one in step.calls],
    }


def _call(call: TrailCall) -> JsonObject:
    observation = call.observation
    return {
        "id": call.id,
        "place": call.seq,
        "tool": call.tool,
        "arguments": call.arguments,
        "verdict": call.verdict,
        "decision": call.decision,
        "doubt": call.doubt,
        "attempts": call.attempts,
        "status": None if observation is None else observation.status,
        "observation": None if observation is None else encode(observation)["parts"],
        "error": call.error,
        "seconds": call.seconds,
    }
