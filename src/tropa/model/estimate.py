"""Token counts where no tokenizer is at hand: an estimate by kind of text, leaning to too many."""

from __future__ import annotations

import math
import re
from typing import cast

from tropa.messages import Json, dumps

MARGIN = 1.1
PER_MESSAGE = 6
"""Tokens that a chat template wraps around a message."""

_OPAQUE = re.compile(r"[A-Za-z0-9+/=_-]{40,}")
_SPACE = re.compile(r"\s{2,}")
# characters per token of a vocabulary of 32,000 to 200,000 entries; the low end of what such tokenizers show
_KINDS: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile(r"[A-Za-z ]+"), 3.6),
    (re.compile(r"[0-9]+"), 1.0),
    (re.compile(r"[!-/:-@\[-`{-~]+"), 1.6),
    (re.compile(r"[\x00-\x1f\x7f]+"), 1.0),
)
_WIDE: tuple[tuple[re.Pattern[str], float], ...] = (
    (re.compile("[\u0080-\u06ff]+"), 2.0),
    (re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef]+"), 1.0),
    (re.compile("[\u0700-\u303f\u3100-\u33ff\u4dc0-\u4dff\ua000-\uabff\ud7b0-\ufeff\ufff0-\uffff]+"), 0.7),
    (re.compile("[\U00010000-\U0010ffff]+"), 0.4),
)


def estimate_text(text: str) -> float:
    """Tokens that `text` is likely to be, without margin."""
    tokens = 0.0
    if opaque := _OPAQUE.findall(text):
        tokens += sum(map(len, opaque)) / 1.4
        text = _OPAQUE.sub("", text)
    if spaces := _SPACE.findall(text):
        tokens += sum(map(len, spaces)) / 2
        text = _SPACE.sub("", text)
    for pattern, per_token in _KINDS if text.isascii() else _KINDS + _WIDE:
        tokens += sum(map(len, pattern.findall(text))) / per_token
    return tokens


def estimate_body(body: dict[str, Json], image_tokens: int) -> float:
    """Prompt tokens of a chat completion body, without margin: messages, their frames, tools, pictures."""
    messages = body.get("messages")
    tokens = 3.0
    for message in messages if isinstance(messages, list) else []:
        tokens += PER_MESSAGE + _estimate(message, image_tokens)
    for key in ("tools", "response_format"):
        if key in body:
            tokens += estimate_text(dumps(body[key]))
    return tokens


def with_margin(tokens: float, ratio: float = 1.0) -> int:
    """An estimate to reserve by: corrected by what was reported before, with a margin, rounded up."""
    return max(1, math.ceil(tokens * ratio * MARGIN))


def _estimate(value: Json, image_tokens: int) -> float:
    if isinstance(value, str):
        return estimate_text(value)
    if isinstance(value, list):
        return sum(_estimate(item, image_tokens) for item in value)
    if isinstance(value, dict):
        if value.get("type") == "image_url":
            return image_tokens
        return sum(_estimate(cast("Json", item), image_tokens) for item in value.values())
    return 0.0
