"""What went wrong with a request, said without secrets and with the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tropa.errors import ModelError
from tropa.messages import JsonObject
from tropa.model.retry import RETRIED, is_quota, is_template_error

LONGEST = 600
"""Characters of a server's own words that an error carries."""

_SECRET = re.compile(r"\b(?:sk|pk|gsk|xai|key)-[\w-]{8,}|\bBearer\s+[^\s\"',]+|(?<=://)[^/\s@]+(?=@)", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"max_completion_tokens|unsupported|not supported|unknown|unrecognized|unexpected|extra|permitted|not allowed",
    re.IGNORECASE,
)
# what else servers call a parameter when they refuse it
_MENTIONS = {
    "stream_options": re.compile(r"stream_options|include_usage"),
    "parallel_tool_calls": re.compile(r"parallel_tool_calls"),
    "response_format": re.compile(r"response_format|json_schema|grammar"),
    "strict": re.compile(r"\bstrict\b"),
    "max_tokens": re.compile(r"\bmax_tokens\b"),
}
_REMEDIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\bdeveloper\b", re.IGNORECASE), "use a profile with `system_role='system'`"),
    (re.compile(r"must alternate|roles should alternate", re.IGNORECASE), "use a profile with `merge_roles=True`"),
    (re.compile(r"system (?:role|message)", re.IGNORECASE), "use a profile with `system_role='first-user'`"),
    (
        re.compile(r"not support tools|tool choice requires|does not support function", re.IGNORECASE),
        "use a profile with `native_tools=False`",
    ),
    (re.compile(r"image_url|image input|vision|support images?", re.IGNORECASE), "use a profile with `images=False`"),
)


class Failure(Exception):
    """A request that failed: `status` is `None` where no answer came, `text` is the server's own words.

    `final` says that the same request will fail again.
    """

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        param: str = "",
        final: bool = False,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.headers = headers or {}
        self.param = param
        self.final = final

    @property
    def retryable(self) -> bool:
        """Whether sending the same request again may help."""
        if self.final:
            return False
        if self.status is None or self.status >= 500:
            return True
        return self.status in RETRIED and not (self.status == 429 and is_quota(self.text))

    @property
    def tries(self) -> int | None:
        """The most times this request is sent in all, where the kind of failure limits it."""
        return 2 if self.status is not None and self.status >= 500 and is_template_error(self.text) else None


def refused_parameter(failure: Failure, body: JsonObject, user_set: Iterable[str]) -> str | None:
    """The parameter that the server refuses and that we, not the user, put into `body`."""
    if failure.status not in (400, 404, 422, 500, 501):
        return None
    ours = [name for name in _MENTIONS if _sent(name, body) and name not in set(user_set)]
    for name in ours:
        if failure.param == name and (name != "max_tokens" or _UNSUPPORTED.search(failure.text)):
            return name
    for name in ours:
        if _MENTIONS[name].search(failure.text) and (name != "max_tokens" or _UNSUPPORTED.search(failure.text)):
            return name
    return None


def model_error(failure: Failure, *, name: str, where: str, attempts: int, secrets: Iterable[str]) -> ModelError:
    """The error that is raised in the end: model, host, status, tries, the server's words, the remedy; no secrets."""
    said = " ".join(failure.text.split())
    said = said if len(said) <= LONGEST else said[: LONGEST - 1] + "…"
    parts = [f"`{name}` at {where}: " + (f"HTTP {failure.status}" if failure.status else "no usable answer")]
    if attempts > 1:
        parts.append(f" after {attempts} attempts")
    parts.append(f": {said}" if said else "")
    if "retry-after" in failure.headers:
        parts.append(f" (retry-after: {failure.headers['retry-after'][:60]})")
    if remedy := _remedy(failure):
        parts.append(f"; {remedy}")
    return ModelError(redacted("".join(parts), secrets), status=failure.status, retryable=failure.retryable)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """`text` with every secret, and everything that looks like a key, replaced."""
    for secret in sorted((secret for secret in secrets if len(secret) > 2), key=len, reverse=True):
        text = text.replace(secret, "***")
    return _SECRET.sub("***", text)


def _sent(name: str, body: JsonObject) -> bool:
    if name != "strict":
        return name in body
    tools = body.get("tools")
    forms = [tool.get("function") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    form = body.get("response_format")
    forms += [form.get("json_schema")] if isinstance(form, dict) else []
    return any(isinstance(form, dict) and "strict" in form for form in forms)


def _remedy(failure: Failure) -> str | None:
    if failure.status in (401, 403):
        return "check the API key"
    if failure.status == 404 or failure.final:
        return "check the model's name and the base URL, which usually ends in `/v1`"
    if failure.status is None or failure.status in RETRIED:
        return None
    return next((remedy for pattern, remedy in _REMEDIES if pattern.search(failure.text)), None)
