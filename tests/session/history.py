"""What must hold of every history that a provider is sent."""

from __future__ import annotations

from tropa.messages import Assistant, Observation, User


def well_formed(messages):
    """Each call is answered once, right after its assistant message and in its order; nothing else is answered."""
    waiting = []
    for message in messages:
        if isinstance(message, Observation):
            assert waiting, f"a result without a call: {message}"
            assert message.call_id == waiting.pop(0), "results stand in the order of their calls"
        else:
            assert not waiting, f"calls without a result: {waiting}"
            if isinstance(message, Assistant):
                waiting = [call.id for call in message.calls]
                assert len(set(waiting)) == len(waiting)
    assert not waiting, f"calls without a result: {waiting}"
    assert not messages or isinstance(messages[0], User)
    ids = [message.call_id for message in messages if isinstance(message, Observation)]
    assert len(set(ids)) == len(ids)
    return True


def results(messages):
    """The observations, in order."""
    return [message for message in messages if isinstance(message, Observation)]


def texts(messages):
    """What each result says."""
    return [str(message.value) for message in results(messages)]
