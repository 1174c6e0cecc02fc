"""Usage as servers report it, in one convention: cached is part of input, reasoning is part of output."""

from __future__ import annotations

from tropa.messages import Json, JsonObject
from tropa.model.usage import Usage

_ABSURD = 1e12
"""Tokens that no request has: what a server reports beyond is no count."""


def read_usage(reported: JsonObject | None, *, input: int, output: int) -> tuple[Usage, str | None]:
    """The usage of one reply, and a remark where the report is missing or contradicts itself.

    `input` and `output` are our own estimates, in tokens; they stand in for what is missing, null or 0, and the usage
    is then marked as estimated. Counts that are reported on top of the total (a cache read in Anthropic's shape,
    reasoning that only the total includes) are added to it; a part larger than its whole is clamped.
    """
    reported = reported or {}
    prompt = _count(reported, "prompt_tokens")
    fresh = None if prompt is not None else _count(reported, "input_tokens")
    completion = _count(reported, "completion_tokens", "output_tokens")
    detail = _object(reported, "prompt_tokens_details", "input_tokens_details")
    subset = _count(detail, "cached_tokens")
    if subset is None:
        subset = _count(reported, "prompt_cache_hit_tokens", "cached_tokens")
    on_top = _count(reported, "cache_read_input_tokens")
    cached = subset if subset is not None else on_top or 0
    if prompt is None and fresh is not None:
        written = _count(reported, "cache_creation_input_tokens") or 0
        # without a detail of its own this is Anthropic's shape, where `input_tokens` is only what no cache gave
        prompt = fresh if subset is not None else fresh + (on_top or 0) + written
    reasoning = _count(_object(reported, "completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    reasoning = reasoning or _count(reported, "reasoning_tokens") or 0
    total = _count(reported, "total_tokens")
    if reasoning and prompt and completion is not None and total == prompt + completion + reasoning:
        completion += reasoning

    estimated = not prompt or (completion is None) or (completion == 0 and output > 0)
    remark = "the server reported no usage; it is estimated" if estimated else None
    prompt = prompt or input
    completion = completion or output
    if cached > prompt or reasoning > completion:
        part, whole = ("cached", "input") if cached > prompt else ("reasoning", "output")
        remark = (
            f"the server reported more {part} tokens ({max(cached, reasoning) if cached > prompt else reasoning}) "
            f"than {whole} tokens ({prompt if cached > prompt else completion}); they are clamped"
        )
        estimated = True
    usage = Usage(prompt, completion, min(cached, prompt), min(reasoning, completion), estimated=estimated)
    return usage, remark


def _count(fields: JsonObject, *names: str) -> int | None:
    for name in names:
        value: Json = fields.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _ABSURD:
            return int(value)
    return None


def _object(fields: JsonObject, *names: str) -> JsonObject:
    for name in names:
        value = fields.get(name)
        if isinstance(value, dict):
            return value
    return {}
