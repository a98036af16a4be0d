"""What a user may say about a run, in one object from the command line to the partition."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from convoscope.conversation import Flow
from convoscope.errors import UsageError
from convoscope.ingest.given_speakers import GivenSpeakers
from convoscope.ingest.read import PathLike
from convoscope.ingest.settings import ReadSettings, read_settings
from convoscope.ingest.split import PART_BYTES
from convoscope.metrics.registry import Declared
from convoscope.scores.judges import model_of
from convoscope.scoring.session import DEFAULT_CONCURRENCY
from convoscope.statistics.panels import MEDIAN, Aggregation, PanelRule
from convoscope.user_code import names

if TYPE_CHECKING:
    from convoscope.audio.recognise import RecogniserLike
    from convoscope.judging.named import JudgeLike, NamedJudges
    from convoscope.resources.registry import Resource
    from convoscope.scoring.engines import Engine


class Progress(NamedTuple):
    """How far a run has come."""

    stage: str
    conversations: int = 0
    parts: int = 0
    bytes_done: int = 0
    bytes_total: int = 0


def is_day(text: str) -> bool:
    """Whether a text is a day, such as `2026-11-01`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


class ScoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Score the conversations of some files or folders, or conversations made in Python, and keep the run.

    The path `-` is standard input. Records of any format that can be read, as dicts, are scored like their lines.
    `metrics` are names or declarations, or one of these; a text may hold several names, with commas
    between, as on the command line. All that are installed for None. `metrics_from` are Python files,
    modules and `.toml` files of templates whose metrics are added to the installed ones. `resources` are
    what metrics are handed, such as a judge: objects, or functions declared with `@convoscope.resource`.
    Metrics that wait have up to `max_concurrency` questions in flight. `out` is the
    folder of the run; without it, one under `runs/` that depends on input and settings. An attempt that
    was cut short is continued, and a run that is there already and would come out the same is opened. One of
    less input grows: only what is new is scored. With `prune`, what is gone from the logs leaves it; with `keep` it
    stays. Where logs are being written, one that changed within `ended_after` seconds waits, and so does a
    conversation with later events. `since` leaves out conversations that began before that day, such as
    `2026-11-01`, by their own times; days are those of UTC.
    `readers_from` are Python files and modules whose readers are added to the installed ones.
    `turns` is the rule that turns are cut by, `exchange` or `eva`. `tool_failed` are patterns of tool results that
    mean failure, `speech_tools` the tools through which the agent speaks to the user, `session_gap` the hours of
    silence after which a session id is another conversation, `speakers` the labels of who is who, such as
    `{"agent": "SPEAKER_01"}`. `audio` is the folder of the recordings, where they are not where the logs say;
    without `use_audio` no recording is opened, and with `fetch_audio` those at `http` and `https` addresses are
    fetched. `recogniser` names what writes down the sound, such as `faster-whisper:tiny.en`, or is an object
    that does; with `judge_cache`, what it wrote is kept. `flows` are files and folders of flow definitions,
    in addition to those among the logs.
    `label` names a field of the record that is the user's own verdict, such as `reward`, or `csat >= 4` where it
    is a number: it decides what is done and what is lost, and leads ranking and pass^k.
    `annotate` names an annotator, such as `rules`: what it finds is kept with each conversation, and metrics see it.
    `judge` names models that are asked, or is a function or an object that answers; several are a panel, whose
    `panel` says how they come to one score, with `panel_weights` by judge and `require_consensus`. Each is asked
    `repeats` times. `judge_audio` says whether the models take sound, where their names do not, and `send_audio` allows
    to send them clips of recordings. `judge_form` is `scores`, or `yesno` for small models; `max_answer_tokens` cuts an
    answer, and `timeout` is how many seconds one may take. With `joint_questions`, questions about an item that show
    the same go together. `second_look` is a judge that is asked again about a tenth of what was judged.
    `targets`, such as `tools.success >= 90%`, are kept with the run; its reports hold the figures
    against them. A target on a figure of a judge that is not calibrated is undetermined, unless `trust_judge`;
    `calibration` is the file that says how far judges agree with people, `least_labels` and `least_kappa` are what
    they need. `engine` does the work, by default `workers` processes on this machine; `dask://HOST:8786`,
    `ray://HOST:10001`, `dask://local` and `ray://local` are others.
    """

    metrics: str | Declared | Iterable[str | Declared] | None = None
    metrics_from: Iterable[PathLike] = ()
    resources: Iterable[Any] = ()
    judge: JudgeLike | Sequence[JudgeLike] = ()
    repeats: int = 1
    panel: str = MEDIAN.aggregation
    panel_weights: Mapping[str, float] = {}
    require_consensus: float | None = None
    second_look: JudgeLike | None = None
    temperature: float = 0.0
    rubrics: Sequence[PathLike] = ()
    redact: bool | None = None
    redact_patterns: str | Sequence[str] = ()
    judge_cache: bool = True
    judge_form: str = "scores"
    judge_audio: bool | None = None
    send_audio: bool = False
    joint_questions: bool = False
    max_answer_tokens: int | None = None
    timeout: float | None = None
    max_questions: int | None = None
    budget: float | None = None
    calibration: PathLike | None = None
    least_labels: int | None = None
    least_kappa: float | None = None
    trust_judge: bool = False
    out: PathLike | None = None
    limit: int | None = None
    workers: int | None = None
    engine: Engine | str | None = None
    max_concurrency: int = DEFAULT_CONCURRENCY
    strict: bool = False
    prune: bool = False
    keep: bool = False
    ended_after: float = 0.0
    since: str | None = None
    by: Sequence[Sequence[str]] | None = None
    format: str | None = None
    readers_from: Iterable[PathLike] = ()
    turns: str | None = None
    tool_failed: str | Iterable[str] = ()
    speech_tools: str | Iterable[str] = ()
    session_gap: float | None = None
    speakers: GivenSpeakers = ()
    audio: PathLike | None = None
    use_audio: bool = True
    recogniser: RecogniserLike | None = None
    fetch_audio: bool = False
    flows: Iterable[PathLike | Flow] = ()
    label: str | None = None
    annotate: str | None = None
    targets: str | Sequence[str] = ()
    progress: Callable[[Progress], None] | None = None
    part_bytes: int = PART_BYTES

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit must be at least 1, not {self.limit}")
        if self.prune and self.keep:
            raise UsageError("--keep leaves in the run what --prune takes out: name one of them")
        if self.since is not None and not is_day(self.since):
            raise UsageError(f"--since {self.since}: not a day", hint="write it like 2026-11-01")
        if self.max_concurrency < 1:
            raise UsageError(f"--max-concurrency must be at least 1, not {self.max_concurrency}")
        if self.repeats < 1:
            raise UsageError(f"--repeats must be at least 1, not {self.repeats}")
        if self.max_answer_tokens is not None and self.max_answer_tokens < 1:
            raise UsageError(f"--max-answer-tokens must be at least 1, not {self.max_answer_tokens}")
        if self.timeout is not None and self.timeout <= 0:
            raise UsageError(f"--timeout must be above 0, not {self.timeout}")
        self._check_panel()
        if any(not dimensions for dimensions in self.by or ()):
            raise UsageError("a group needs a dimension", hint="for example flow, or flow,agent")

    @property
    def reading(self) -> ReadSettings:
        """How logs are read, checked."""
        return read_settings(
            self.turns, self.tool_failed, self.speech_tools, self.session_gap, self.speakers, self.audio
        )

    @property
    def judges(self) -> tuple[JudgeLike, ...]:
        """The judges that were named."""
        judge: Any = self.judge
        return tuple(judge) if isinstance(judge, list | tuple) else (judge,)

    @property
    def panel_rule(self) -> PanelRule:
        """How several judges come to one score."""
        return PanelRule(
            aggregation=cast(Aggregation, self.panel),
            weights={_model(name): weight for name, weight in self.panel_weights.items()},
            require_consensus=self.require_consensus,
        )

    def _check_panel(self) -> None:
        """Refuse what the judges that are named cannot be."""
        rule, judges = self.panel_rule, self.judges
        if rule.weights and rule.aggregation != "weighted_mean":
            raise UsageError(f"weights have no meaning for the panel {self.panel}", hint="choose weighted_mean")
        if not judges:
            if self.second_look is not None:
                raise UsageError("--second-look: no judge is named whose verdicts could be looked at", hint="--judge")
            return
        if rule != MEDIAN and (refusal := rule.refuse(len(judges))):
            raise UsageError(f"--panel {refusal}", hint="name each judge with --judge")
        if rule.aggregation == "weighted_mean":
            named = set(map(_model, judges))
            if unknown := sorted(named ^ rule.weights.keys()):
                what = "has no weight" if unknown[0] in named else "has a weight, and is no judge of this run"
                raise UsageError(f"{unknown[0]} {what}", hint="convoscope.toml has the weights, in [judge.weights]")

    def named_judges(self, *, are_asked: bool = True) -> NamedJudges | None:
        """The judges that were named, as resources of the run; None where no judge was."""
        if not self.judges:
            return None
        from convoscope.judging.backends import MAX_ANSWER_TOKENS, SECONDS
        from convoscope.judging.instrument import JudgeSettings
        from convoscope.judging.named import named_judges

        patterns = (self.redact_patterns,) if isinstance(self.redact_patterns, str) else tuple(self.redact_patterns)
        settings = JudgeSettings(
            temperature=self.temperature,
            max_concurrency=self.max_concurrency,
            redact=self.redact,
            redact_patterns=patterns,
            use_cache=self.judge_cache,
            form=self.judge_form,
            audio=self.judge_audio,
            send_audio=self.send_audio,
            max_answer_tokens=self.max_answer_tokens or MAX_ANSWER_TOKENS,
            seconds=self.timeout or SECONDS,
            max_questions=self.max_questions,
            max_dollars=self.budget,
            rubrics=tuple(str(Path(folder).resolve()) for folder in self.rubrics),
        )
        return named_judges(self.judges, settings, self.second_look, are_asked=are_asked)

    @property
    def recognisers(self) -> tuple[Resource, ...]:
        """The recogniser that was named, as a resource of the run."""
        if self.recogniser is None:
            return ()
        from convoscope.audio.recognise import named_recogniser

        return (named_recogniser(self.recogniser),)

    @property
    def groupings(self) -> list[list[str]] | None:
        """What the user wants figures by, each dimension once; None leaves it to the run."""
        return None if self.by is None else [list(dict.fromkeys(dimensions)) for dimensions in self.by]

    def portable(self, max_concurrency: int) -> ScoreSettings:
        """What a worker needs, with files by names that hold wherever it runs; `max_concurrency` is the worker's."""
        return msgspec.structs.replace(
            self,
            metrics=None,
            metrics_from=_absolute(self.metrics_from),
            readers_from=_absolute(self.readers_from),
            audio=None if self.audio is None else os.path.abspath(self.audio),
            resources=(),
            judge=(),
            recogniser=None,
            second_look=None,
            engine=None,
            flows=(),
            progress=None,
            max_concurrency=max_concurrency,
        )

    def report(self, stage: str, conversations: int = 0, parts: int = 0, done: int = 0, total: int = 0) -> None:
        """Tell the user's `progress` how far the run has come."""
        if self.progress is not None:
            self.progress(Progress(stage, conversations, parts, done, total))


def joint_metrics(metrics: Iterable[Declared], settings: ScoreSettings) -> tuple[str, ...]:
    """The metrics whose questions may go together; none unless the user wants it."""
    return tuple(one.key for one in metrics) if settings.joint_questions else ()


def _absolute(sources: Iterable[PathLike]) -> tuple[str, ...]:
    return tuple(str(Path(name).resolve()) if Path(name).is_file() else name for name in names(sources))


def _model(judge: JudgeLike) -> str:
    """`provider/model` of a judge as a user names it, in words or as a thing."""
    from convoscope.judging.backends import function_name
    from convoscope.judging.names import judge_name

    if isinstance(judge, str):
        if ":" not in judge:
            return judge
        name = judge_name(judge)
        return f"{name.provider}/{name.model}"
    return model_of(judge.identity) if hasattr(judge, "identity") else function_name(judge)
