"""A plugin of pytest: one test for each target of a policy, and fixtures that score logs and check targets.

Nothing of Convoscope is imported before a test asks for it, so that pytest starts as fast as without the plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from convoscope.analysis.policy import HeldRun, RuleResult
    from convoscope.runs.policy import PolicyRule
    from convoscope.runs.run import Run
    from convoscope.settings_file import FoundSettings

FILE = "convoscope.toml"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("convoscope")
    group.addoption("--convoscope", action="store_true", help=f"Also one test for each target of the policy in {FILE}.")
    group.addoption("--convoscope-policy", metavar="FILE", help="The same, of this policy.")
    group.addoption("--convoscope-run", metavar="RUN", help=f"Check this run. Default: the logs of {FILE} are scored.")
    group.addoption("--convoscope-baseline", metavar="RUN", help="The run to compare with. Default: the baseline.")


def pytest_configure(config: pytest.Config) -> None:
    policy = _policy_path(config)
    if policy is None:
        return
    # In a folder that is collected, it is met anyway.
    given = [Path(config.invocation_params.dir, name).resolve() for name in config.args]
    if not any(policy == path or (path.is_dir() and policy.is_relative_to(path)) for path in given):
        config.args.append(str(policy))


def _policy_path(config: pytest.Config) -> Path | None:
    """The policy that the options ask for; None where they ask for none."""
    if named := config.getoption("convoscope_policy"):
        path = Path(config.invocation_params.dir, named)
    elif config.getoption("convoscope"):
        folders = (config.rootpath, *config.rootpath.parents)
        path = next((folder / FILE for folder in folders if (folder / FILE).is_file()), config.rootpath / FILE)
    else:
        return None
    if not path.is_file():
        raise pytest.UsageError(f"there is no policy at {path}; `convoscope init LOGS` writes a {FILE} with one")
    return path.resolve()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PolicyFile | None:
    """A policy is collected where it is named, and not where it merely is."""
    is_named = file_path.name == FILE and parent.session.isinitpath(file_path)
    if file_path.suffix != ".toml" or not (is_named or file_path.resolve() == _policy_path(parent.config)):
        return None
    return PolicyFile.from_parent(parent, path=file_path)


class PolicyFile(pytest.File):
    """The targets of a policy, over one run."""

    def collect(self) -> Iterator[PolicyItem]:
        from convoscope.errors import ConvoscopeError
        from convoscope.runs.policy import policy_rules

        try:
            rules = policy_rules(self.policy)
        except ConvoscopeError as error:
            raise self.CollectError(str(error)) from None
        for rule in rules:
            yield PolicyItem.from_parent(self, name=rule.text, rule=rule)

    def teardown(self) -> None:
        """Let go of the run: pytest keeps its nodes to the end."""
        for name in ("run", "held"):
            self.__dict__.pop(name, None)

    @cached_property
    def policy(self) -> FoundSettings:
        from convoscope.runs.policy import find_policy

        policy = find_policy(self.path, None)
        assert policy is not None
        return policy

    @cached_property
    def run(self) -> Run:
        """The run that is checked, opened or scored once. No judge is asked."""
        from convoscope.errors import UsageError
        from convoscope.report.score import Run, score

        if named := self.config.getoption("convoscope_run"):
            return Run.open(Path(self.config.invocation_params.dir, named))
        options = self._score_options()
        logs = options.pop("logs", None)
        if not logs:
            hint = f"name a run with --convoscope-run, or logs in {FILE}: convoscope init LOGS"
            raise UsageError(f"{self.path.name} names no logs to score", hint=hint)
        return score(logs, **options)

    @cached_property
    def held(self) -> HeldRun:
        from convoscope.analysis.policy import hold

        named = self.config.getoption("convoscope_baseline")
        against = Path(self.config.invocation_params.dir, named) if named else None
        return hold(self.run, (), self.policy, self._settings, against)

    def _score_options(self) -> dict[str, Any]:
        from convoscope.settings_file import listed, score_options

        options = score_options(self._settings, {})
        if "map" in options:
            options["readers_from"] = [options.pop("map")]
        if "by" in options:
            options["by"] = [one.split(",") for one in listed(options["by"])]
        return options

    @cached_property
    def _settings(self) -> FoundSettings:
        """The settings of the project: the policy's file, or what is found beside or above it."""
        from convoscope.settings_file import find_settings

        if self.path.name == FILE:
            return self.policy
        near = next((folder / FILE for folder in self.path.parents if (folder / FILE).is_file()), None)
        return self.policy if near is None else find_settings(near) or self.policy


class PolicyItem(pytest.Item):
    """One target of a policy."""

    parent: PolicyFile

    def __init__(self, *, rule: PolicyRule, **options: Any) -> None:
        super().__init__(**options)
        self.rule = rule

    def runtest(self) -> None:
        from convoscope.errors import ConvoscopeError

        try:
            held = self.parent.held
        except ConvoscopeError as error:
            raise TargetMissed(str(error)) from None
        run, gate = self.parent.run, held.gate
        results = [result for result in gate.rules if result.rule == self.rule.text] if gate is not None else []
        bad = [result for result in results if result.counts_as in ("failed", "undetermined")]
        if not run.receipt.valid:
            raise TargetMissed(f"the run {run.folder} is marked invalid: {run.receipt.invalid_reason}")
        if bad or not results:
            raise TargetMissed("\n".join(_failure_lines(run, held, bad)) or "nothing was checked")
        for result in results:
            if result.outcome == "undetermined":
                words = f"{result.name} {result.limit}: undetermined: {result.reason}"
                self.warn(pytest.PytestWarning(words))
                pytest.skip(words)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, TargetMissed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        line = self.parent.policy.line(self.rule.key)
        return self.path, None if line is None else line - 1, f"policy: {self.name}"


class TargetMissed(AssertionError):
    """A target that is missed or undetermined, with what there is to say about it."""


def _failure_lines(run: Run, held: HeldRun, results: list[RuleResult]) -> Iterator[str]:
    from convoscope.harmless import one_line
    from convoscope.report.gate import rule_text
    from convoscope.report.junit import worst_lines
    from convoscope.runs.run import PAGE

    for result in results:
        yield one_line(f"{result.name} {result.limit}: {result.outcome}: {rule_text(result)}", None)
        for check in held.checks:
            is_meant = check.requires.rule == result.rule and check.name == result.figure
            if is_meant and not check.by and check.label == "missed":
                yield from (f"  {line}" for line in worst_lines(run, check))
        if result.kind == "change" and held.gate is not None:
            yield from (f"  {one_line(sentence, None)}" for sentence in held.gate.sentences)
    page = run.folder / PAGE
    yield f"  run {run.folder}" + (f", page {page}" if page.is_file() else "")


@pytest.fixture(scope="session")
def convoscope_score(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """`convoscope_score("logs/", label="resolved")`: the run of logs, conversations or records, in a temporary folder.

    Takes what `convoscope.score` takes.
    """

    def score(source: Any, **settings: Any) -> Run:
        from convoscope.report.score import score as score_source

        settings.setdefault("out", tmp_path_factory.mktemp("convoscope") / "run")
        return score_source(source, **settings)

    return score


@pytest.fixture(scope="session")
def convoscope_check() -> Callable[..., None]:
    """`convoscope_check(run, "tools.success >= 90%")`: fails where a target is missed or undetermined."""

    def check(run: Run, *targets: str) -> None:
        from convoscope.analysis.policy import check_policy, hold
        from convoscope.runs.policy import Policy

        __tracebackhide__ = True
        if not targets:
            raise TargetMissed("no target: nothing was checked")
        held = hold(run, targets)
        gate = check_policy(run, Policy(), held.checks, None)
        bad = [rule for rule in gate.rules if rule.counts_as in ("failed", "undetermined")]
        if gate.outcome != "passed":
            raise TargetMissed("\n".join([*gate.notes, *_failure_lines(run, held._replace(gate=gate), bad)]))

    return check
