"""How many examples a property is tried with.

``make test`` tries each with a few, ``make fuzz`` with ``FUZZ_TIMES`` as many. With a seed
(``--hypothesis-seed``), every run of a commit tries the same ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

TIMES = int(os.environ.get("FUZZ_TIMES", "1"))
"""By how much `make fuzz` multiplies the number of examples."""


def bounded(examples: int, *, steps: int = 50) -> settings:
    """Settings of a property that ``make test`` tries with this many examples.

    Args:
        examples: how many.
        steps: the most steps in an example of a state machine.
    """
    return settings(
        max_examples=examples * TIMES,
        deadline=None,  # no test is about how long something takes
        suppress_health_check=list(HealthCheck),
        stateful_step_count=steps,
    )


EVERY_TEST = settings(max_examples=20 * TIMES, deadline=None)
"""Of the properties that do not say how many."""


def leave_out_constants() -> None:
    """Draw examples from the seed alone, for the rest of this process.

    Hypothesis also tries the constants of the project's modules that the process has imported by
    then. Which they are depends on the tests that ran before in the same process, and a new
    constant anywhere changes the examples of every property.
    """
    nothing = Constants()
    providers._get_local_constants = lambda: nothing
