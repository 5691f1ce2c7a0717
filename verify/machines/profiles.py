"""Settings of the state machines: ``ci`` is short and repeatable, ``thorough`` is neither."""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase

EXAMPLES: Final = DirectoryBasedExampleDatabase(".hypothesis/examples")
"""Where failures are kept, to be tried first next time."""

_SLOW: Final = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)

_PHASES: Final = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target)
"""Without shrinking of draws: the machines shrink their own calls, in a fraction of the time."""

PROFILES: Final = {
    "ci": settings(
        max_examples=120,
        stateful_step_count=40,
        deadline=None,
        phases=_PHASES,
        report_multiple_bugs=False,
        derandomize=True,
        database=None,
        suppress_health_check=_SLOW,
    ),
    "thorough": settings(
        max_examples=3000,
        stateful_step_count=80,
        deadline=None,
        phases=_PHASES,
        report_multiple_bugs=False,
        database=EXAMPLES,
        print_blob=True,
        suppress_health_check=_SLOW,
    ),
}
"""Settings by name."""
