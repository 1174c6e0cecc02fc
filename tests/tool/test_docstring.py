"""Descriptions from docstrings in the three styles."""

from __future__ import annotations

import pytest

from tropa.tool.docstring import describe

GOOGLE = """Find a thing.

    Looks everywhere: also here.

    Args:
        name (str): What it is called,
            in full.
        limit: At most so many.
        *rest: More.

    Returns:
        note: not a parameter.
    """

NUMPY = """Find a thing.

    Looks everywhere: also here.

    Parameters
    ----------
    name : str
        What it is called,
        in full.
    limit
        At most so many.

    Returns
    -------
    str
        Something.
    """

SPHINX = """Find a thing.

    Looks everywhere: also here.

    :param str name: What it is called,
        in full.
    :param limit: At most so many.
    :returns: Something.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_description_and_parameters(docstring):
    text, words = describe(docstring)
    assert text == "Find a thing.\n\nLooks everywhere: also here."
    assert words["name"] == "What it is called, in full."
    assert words["limit"] == "At most so many."
    assert set(words) <= {"name", "limit", "rest"}


def test_without_sections_everything_is_the_description():
    assert describe("One line.") == ("One line.", {})
    assert describe(None) == ("", {})
    assert describe("Notes\n\nExamples of use are elsewhere.") == ("Notes\n\nExamples of use are elsewhere.", {})
