"""How far judges agree with people, as it is kept: one entry for each judge and metric, in a file that runs find."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from convoscope.errors import InputError
from convoscope.scores.judges import is_model_panel, is_nameless

LEAST_LABELS = 50
LEAST_KAPPA = 0.4
NOT_CALIBRATED = "not calibrated"


class FlagCounts(msgspec.Struct, frozen=True, array_like=True):
    """Labels in which people, the judge, or both flag a fault of one kind."""

    both: int = 0
    only_people: int = 0
    only_judge: int = 0


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How a judge's ratings and those of people fit."""

    metric: str
    rubric: str
    version: int
    judge: str
    """Model, and a hash of rubric and parameters; or a panel, or `external:NAME`."""
    labels: int
    """Labels that the judge answered, too."""
    unanswered: dict[str, int]
    """Labels without a rating of the judge, by reason."""
    accuracy: float | None
    accuracy_interval: tuple[float, float] | None
    macro_f1: float | None
    kappa: float | None
    """Cohen's, with linear weights where the scale has more than two ratings."""
    kappa_interval: tuple[float, float] | None
    majority: float | None
    """The accuracy of always giving the commonest rating."""
    ratings: list[float]
    confusion: list[list[int]]
    """Rows: people; columns: the judge; in the order of `ratings`."""
    passes_at: float
    """The rating from which on a call passes; the last that passes where lower is better."""
    is_lower_better: bool = False
    flags: dict[str, FlagCounts] = {}
    """By the kind of fault, where labels name it."""
    clusters: int = 0
    """What was drawn for the intervals: calls that begin alike, scenarios, or conversations."""
    part: str = ""
    """Empty for all labels; else which of them."""
    parts: list[Agreement] = []
    least_labels: int = LEAST_LABELS
    least_kappa: float = LEAST_KAPPA
    at: str

    @property
    def is_calibrated(self) -> bool:
        """Enough labels, and the whole interval of kappa above what chance and luck give."""
        low = self.kappa_interval[0] if self.kappa_interval else None
        return self.labels >= self.least_labels and low is not None and low > self.least_kappa

    @property
    def text(self) -> str:
        """`κ 0.61 (0.48 to 0.72), 69 labels`, `not calibrated: κ 0.47 (0.23 to 0.70), 64 labels`."""
        if not self.labels:
            return f"{NOT_CALIBRATED}: no label has an answer"
        labels = f"{self.labels:,} label{'' if self.labels == 1 else 's'}"
        if lost := sum(self.unanswered.values()):
            labels += f", {lost:,} without an answer"
        if self.kappa is None:
            return f"{NOT_CALIBRATED}: {labels}, no κ"
        interval = "no interval" if self.kappa_interval is None else "{:.2f} to {:.2f}".format(*self.kappa_interval)
        words = f"κ {self.kappa:.2f} ({interval}), {labels}"
        return words if self.is_calibrated else f"{NOT_CALIBRATED}: {words}"

    @property
    def verdict(self) -> str:
        """`calibrated`, or what is missing: `needs 42 more`, `may be < 0.4`."""
        if self.is_calibrated:
            return "calibrated"
        if self.labels < self.least_labels:
            return f"needs {self.least_labels - self.labels:,} more"
        return "no interval" if self.kappa_interval is None else f"may be < {self.least_kappa:g}"

    @property
    def wrongly_passed(self) -> tuple[int, int]:
        """Of the labels that fail by people, those that the judge passes; and how many fail."""
        return self._across(fails=True)

    @property
    def wrongly_failed(self) -> tuple[int, int]:
        """Of the labels that pass by people, those that the judge fails; and how many pass."""
        return self._across(fails=False)

    def _across(self, *, fails: bool) -> tuple[int, int]:
        rows = [row for rating, row in zip(self.ratings, self.confusion, strict=True) if self._fails(rating) == fails]
        other = [index for index, rating in enumerate(self.ratings) if self._fails(rating) != fails]
        return sum(row[index] for row in rows for index in other), sum(map(sum, rows))

    def _fails(self, rating: float) -> bool:
        return rating > self.passes_at if self.is_lower_better else rating < self.passes_at


def calibration_file() -> Path:
    """Where calibrations are kept: beside the cache of answers that `CONVOSCOPE_CACHE` names, else the user's data."""
    from convoscope.judging.cache import VARIABLE  # SQLite, which most commands do without

    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) / "calibration.json"
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "convoscope" / "calibration.json"


def kept_calibrations(file: Path) -> list[Agreement]:
    """All that the file holds; none where there is no file."""
    if not file.exists():
        return []
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[Agreement])
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(f"is not a calibration: {error}", file=str(file), hint="calibrate again") from None


def keep_calibrations(results: Iterable[Agreement], file: Path) -> int:
    """Add calibrations to the file, and say how many. One of the same judge and metric replaces an older one.

    The name of an external judge does not say which model and which prompt, nor does that of a function without a
    version, or of a panel with one: what they are worth holds only in their run.
    """
    agreements = list(results)
    judges = {agreement.judge for agreement in agreements}
    has_nameless = any(map(is_nameless, judges))
    dropped = {judge for judge in judges if is_nameless(judge) or (has_nameless and is_model_panel(judge))}
    lasting = [agreement for agreement in agreements if agreement.labels and agreement.judge not in dropped]
    if not lasting:
        return 0
    kept = replaced(kept_calibrations(file), lasting)
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".tmp")
    scratch.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")
    scratch.replace(file)
    return len(lasting)


def replaced(kept: Iterable[Agreement], fresh: Iterable[Agreement]) -> list[Agreement]:
    """Both, in the order of metrics and judges; of one judge and metric the fresh one."""
    by_key = {(one.metric, one.judge): one for one in (*kept, *fresh)}
    return [by_key[key] for key in sorted(by_key)]


def found_calibrations(
    file: Path | None, least_labels: int | None = None, least_kappa: float | None = None
) -> list[Agreement]:
    """What a run can say of its judges: of the file that is named, which must be there, else of the usual one."""
    if file is not None and not file.is_file():
        raise InputError("there is no such calibration", file=str(file), hint="`convoscope judge calibrate` makes one")
    return [held_to(one, least_labels, least_kappa) for one in kept_calibrations(file or calibration_file())]


def held_to(agreement: Agreement, least_labels: int | None, least_kappa: float | None) -> Agreement:
    """An agreement by other marks; None leaves a mark as it is."""
    return msgspec.structs.replace(
        agreement,
        least_labels=agreement.least_labels if least_labels is None else least_labels,
        least_kappa=agreement.least_kappa if least_kappa is None else least_kappa,
    )
