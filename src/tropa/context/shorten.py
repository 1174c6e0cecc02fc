"""Long observations: head and tail, with a mark that says what was left out."""

from __future__ import annotations

from dataclasses import replace

from tropa.messages import Data, Observation, Text, dumps


def shorten(text: str, limit: int) -> str:
    """`text` within about `limit` characters: two thirds from its head, one third from its tail, a mark between."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} of {len(text)} characters left out …]\n{text[-tail:]}"


def shorten_observation(observation: Observation, limit: int) -> Observation:
    """An observation whose texts and data take at most about `limit` characters each. Images stay whole."""
    texts = [_long(part, limit) for part in observation.parts]
    if not any(text is not None for text in texts):
        return observation
    parts = tuple(
        part if text is None else Text(shorten(text, limit))
        for part, text in zip(observation.parts, texts, strict=True)
    )
    return replace(observation, parts=parts)


def _long(part: object, limit: int) -> str | None:
    text = part.text if isinstance(part, Text) else dumps(part.value) if isinstance(part, Data) else ""
    return text if len(text) > limit else None
