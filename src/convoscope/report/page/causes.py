"""Of each version, how many conversations a cause lost of those that came to where it happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np

from convoscope.analysis.answer import Answer, Cause
from convoscope.analysis.answer.differences import order_key
from convoscope.runs.audit import NO_FLOW
from convoscope.runs.database import CONVERSATIONS, connect
from convoscope.runs.ranking import rank
from convoscope.runs.run import Run
from convoscope.views.flow.endings import DONE, LOST, OUTCOMES

VersionVisits = Mapping[str, Mapping[tuple[str, str], int]]
"""By version and by flow and state: conversations that were there."""
MAX_VERSIONS = 4
TWICE = 2.0


class VersionShare(msgspec.Struct, frozen=True, array_like=True):
    """Of one version, how many a cause lost of those that could be."""

    version: str
    text: str
    length: float
    """Of its bar, in percent."""
    worse: bool
    """It loses twice the share of another version, or more."""


class CauseShares:
    """The versions of a run, and which of them its lost conversations are of."""

    def __init__(self, run: Run, answer: Answer, visits: VersionVisits | None) -> None:
        self._visits = visits or {}
        self._version: dict[int, str] = {}
        self._known: Counter[str] = Counter()
        numbers = [number for cause in answer.causes for number in cause.numbers]
        agents = {one.by["agent"] for one in run.summary.groups if list(one.by) == ["agent"]}
        if not numbers or not 2 <= len(agents) <= MAX_VERSIONS:
            return
        ranking = rank(run)
        known = np.isin(ranking.outcome, [OUTCOMES.index(DONE), OUTCOMES.index(LOST)])
        known[list(ranking.errors)] = False
        with connect(run.folder) as connection:
            connection.register("ended", {"number": np.arange(len(known)), "known": known})
            connection.register("wanted", {"number": np.asarray(numbers, dtype=np.int64)})
            table = run.table(CONVERSATIONS)
            self._known |= dict(
                connection.execute(
                    f"SELECT agent, count(*) FROM {table} JOIN ended USING (number) WHERE known AND agent IS NOT NULL "
                    "GROUP BY agent"
                ).fetchall()
            )
            query = f"SELECT number, agent FROM {table} SEMI JOIN wanted USING (number) WHERE agent IS NOT NULL"
            self._version = dict(connection.execute(query).fetchall())

    def of(self, cause: Cause) -> list[VersionShare]:
        """Lost of entered, where all of a cause end in one state; else of all conversations of a version."""
        if not self._version:
            return []
        lost = Counter(self._version[number] for number in cause.numbers if number in self._version)
        key = (cause.flow or NO_FLOW, cause.state)
        entered = {version: states.get(key, 0) for version, states in self._visits.items()}
        known = sorted(self._known, key=order_key)
        if not cause.in_one_state or not all(entered.get(version, 0) >= lost[version] for version in known):
            entered = dict(self._known)
        shares = {version: lost[version] / entered[version] for version in known if entered.get(version)}
        most = max(shares.values(), default=0.0) or 1.0
        least = min(shares.values(), default=0.0)
        return [
            VersionShare(
                version,
                f"{lost[version]:,} of {entered[version]:,}",
                round(100 * share / most, 1),
                len(shares) > 1 and share == most and share >= TWICE * least,
            )
            for version, share in shares.items()
        ]
