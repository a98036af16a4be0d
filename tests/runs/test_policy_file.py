"""A policy as a file has it: what its targets mean, and what is refused, with file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from convoscope.errors import InputError
from convoscope.metrics import Target
from convoscope.runs.policy import ChangeTarget, Policy, find_policy, resolve
from convoscope.runs.targets import FigureTarget, Requirements
from convoscope.settings_file import FoundSettings, read_settings_file

UNITS = {
    "tools.success": "share",
    "outcome.success": "share",
    "answer.f1": "ratio",
    "timing.response_latency p95": "s",
    "conversation.turns": "count",
}


def policy(folder: Path, text: str) -> Policy:
    file = folder / "policy.toml"
    file.write_text(text)
    found = find_policy(file, None)
    assert found is not None
    return resolve(found, UNITS)


def change(figure: str, comparison: str, value: float, rule: str, **facts: bool) -> ChangeTarget:
    requires = Requirements(decide="interval", rule=rule)
    return ChangeTarget(figure, Target(comparison, value), requires=requires, **facts)  # type: ignore[arg-type]


def test_tables_and_texts_mean_the_same(tmp_path: Path) -> None:
    made = policy(
        tmp_path,
        """
[[policy.target]]
figure = "outcome.success"
at_least = "80%"
min_n = 100
min_coverage = 0.9
[[policy.target]]
rule = "tools.success >= 90%"
when_undetermined = "warn"
[[policy.target]]
figure = "outcome.success"
group = { flow = "booking" }
at_least = 0.75
decide = "interval"
""",
    )
    assert made == Policy(
        (
            FigureTarget(
                "outcome.success", Target(">=", 0.8), (), Requirements(100, 0.9, rule="outcome.success >= 80%")
            ),
            FigureTarget(
                "tools.success",
                Target(">=", 0.9),
                (),
                Requirements(when_undetermined="warn", rule="tools.success >= 90%"),
            ),
            FigureTarget(
                "outcome.success",
                Target(">=", 0.75),
                (("flow", "booking"),),
                Requirements(decide="interval", rule="outcome.success[flow=booking] >= 0.75"),
            ),
        ),
        texts=("outcome.success >= 80%", "tools.success >= 90%", "outcome.success[flow=booking] >= 0.75"),
    )


def test_a_list_may_hold_texts_and_tables(tmp_path: Path) -> None:
    made = policy(
        tmp_path,
        """
[policy]
min_n = 50
when_undetermined = "fail"
target = [
    "outcome.success[flow=booking] >= 75%",
    { figure = "turns", at_most = 12, min_n = 5 },
    "tools.success change >= -2pp",
]
""",
    )
    assert [(one.figure, one.target, one.by, one.requires[:4]) for one in made.targets] == [
        ("outcome.success", Target(">=", 0.75), (("flow", "booking"),), (50, 0.0, "value", "fail")),
        ("conversation.turns", Target("<=", 12.0), (), (5, 0.0, "value", "fail")),
    ]
    assert [(one.figure, one.target, one.requires[:4]) for one in made.changes] == [
        ("tools.success", Target(">=", -0.02), (50, 0.0, "interval", "fail"))
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # two points of a share are 0.02
        (
            'figure = "tools.success"\nchange_at_most = "+2pp"',
            change("tools.success", "<=", 0.02, "tools.success change <= +2pp"),
        ),
        ('figure = "f1"\nchange_at_least = -0.05', change("answer.f1", ">=", -0.05, "f1 change >= -0.05")),
        (
            'figure = "response_latency p95"\nchange_at_most = "0.3 s"',
            change("timing.response_latency p95", "<=", 0.3, "response_latency p95 change <= +0.3 s"),
        ),
        # a tenth of what the baseline has
        (
            'figure = "response_latency p95"\nchange_at_most = "10%"',
            change("timing.response_latency p95", "<=", 0.1, "response_latency p95 change <= +10%", is_share=True),
        ),
        (
            'rule = "tools.success change < 1pp"',
            change("tools.success", "<", 0.01, "tools.success change < +1pp"),
        ),
    ],
)
def test_changes(tmp_path: Path, line: str, expected: ChangeTarget) -> None:
    assert policy(tmp_path, f"[[policy.target]]\n{line}\n").changes == (expected,)


def test_a_figure_that_the_run_was_scored_without_is_kept_as_absent(tmp_path: Path) -> None:
    made = policy(tmp_path, '[policy]\ntarget = ["agent.talks_over_user <= 5%", "tools.success >= 90%"]\n')
    assert [rule.text for rule in made.absent] == ["agent.talks_over_user <= 5%"]
    assert [one.figure for one in made.targets] == ["tools.success"]


HEAD = "[[policy.target]]\n"


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("[policy]\nmin_n = 5\n", "policy.toml:1 policy", "names no target"),
        ("[policy]\ntarget = []\n", "policy.toml:1 policy", "names no target"),
        ("", "policy.toml policy", "names no target"),
        (
            f'{HEAD}figure = "tools.sucess"\nat_least = 1\n',
            "policy.toml:1 policy.target[1]",
            "did you mean tools.success",
        ),
        (f'{HEAD}figure = "tools.success"\n', "policy.toml:1 policy.target[1]", "tools.success has no limit"),
        (f"{HEAD}at_least = 1\n", "policy.toml:1 policy.target[1]", "names no figure"),
        (f'{HEAD}figure = "turns"\nat_least = "many"\n', "policy.toml:1 policy.target[1]", "'many' is not a number"),
        (f'{HEAD}figure = "turns"\nat_least = inf\n', "policy.toml:1 policy.target[1]", "inf is not a limit"),
        (f'{HEAD}figure = "turns"\nat_least = nan\n', "policy.toml:1 policy.target[1]", "nan is not a limit"),
        (f'{HEAD}figure = "turns"\nat_least = true\n', "policy.toml:3 policy.target[1].at_least", "got `bool`"),
        (
            f'{HEAD}figure = "turns"\nat_least = 1\nat_most = 2\n',
            "policy.toml:1 policy.target[1]",
            "has both at_least and at_most",
        ),
        (
            f'{HEAD}rule = "turns > 1"\nat_most = 2\n',
            "policy.toml:1 policy.target[1]",
            "has both rule and at_most",
        ),
        (f'{HEAD}figure = "tools.success"\nat_least = 80\n', "policy.toml:1 policy.target[1]", "write 80%"),
        (
            f'{HEAD}figure = "tools.success"\nchange_at_most = "2%"\n',
            "policy.toml:1 policy.target[1]",
            "write +2pp",
        ),
        (
            f'{HEAD}figure = "response_latency p95"\nchange_at_most = "2pp"\n',
            "policy.toml:1 policy.target[1]",
            "is not in 'pp'",
        ),
        (
            f'{HEAD}figure = "tools.success"\ngroup = {{ flow = "a" }}\nchange_at_most = "2pp"\n',
            "policy.toml:1 policy.target[1]",
            "a change of a group is not checked",
        ),
        (
            f'{HEAD}rule = "turns > 1"\n\n{HEAD}figure = "conversation.turns"\nat_least = 2\n',
            "policy.toml:4 policy.target[2]",
            "target 1 is on the same figure already",
        ),
        (f'{HEAD}rule = "turns > 1"\n\n{HEAD}figur = "x"\n', "policy.toml:5 policy.target[2].figur", "mean figure"),
        (
            f'{HEAD}rule = "turns > 1"\n{HEAD}rule = "f1 > 0"\nmin_n = "x"\n',
            "policy.toml:5 policy.target[2].min_n",
            "Expected `int`",
        ),
        (f'{HEAD}rule = "turns > 1"\nmin_coverage = 90\n', "policy.toml:3 policy.target[1].min_coverage", "<= 1"),
        (f'{HEAD}rule = "turns > 1"\ndecide = "luck"\n', "policy.toml:3 policy.target[1].decide", "'luck'"),
        ('[policy]\ntarget = "turns > 1"\n', "policy.toml:2 policy.target", "Expected `array`"),
        ("[policy]\ntarget = [3]\n", "policy.toml:2 policy.target[1]", "got `int`"),
        ('[policy]\ntarget = ["turns"]\n', "policy.toml:2 policy.target[1]", "'turns' is not a target"),
        (
            f"{HEAD}figure = 'turns'\ngroup = {{ flow = 3 }}\nat_least = 1\n",
            "policy.toml:3 policy.target[1].group",
            "str",
        ),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_field(tmp_path: Path, text: str, where: str, message: str) -> None:
    with pytest.raises(InputError) as wrong:
        policy(tmp_path, text)
    assert str(wrong.value).startswith(f"{tmp_path}/{where}: ")
    assert message in str(wrong.value)


def test_two_limits_in_two_directions_are_two_targets(tmp_path: Path) -> None:
    made = policy(tmp_path, '[policy]\ntarget = ["turns >= 2", "turns <= 9", "turns change <= 1"]\n')
    assert (len(made.targets), len(made.changes)) == (2, 1)


def test_settings_without_a_policy_have_none(tmp_path: Path) -> None:
    file = tmp_path / "convoscope.toml"
    file.write_text("[judge]\nrepeats = 2\n")
    assert find_policy(None, FoundSettings(file, read_settings_file(file), is_named=False)) is None
    assert find_policy(None, None) is None
