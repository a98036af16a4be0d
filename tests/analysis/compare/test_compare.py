"""Two sets of logs compared: what a careful reader would claim, and what he would not."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from convoscope.errors import UsageError
from convoscope.report.compare import compare
from support.command_line import convoscope_here
from support.compared_logs import METRICS, claims, compare_logs, row, write
from support.ended_chats import cells, ended, timed, turns
from support.scenarios import Record

EASY, HARD = {"domain": "easy"}, {"domain": "hard"}


def side(good: int, count: int, prefix: str, **fields: Any) -> list[Record]:
    """So many chats, the first of them resolved."""
    return [ended(f"{prefix}{number}", number < good, **fields) for number in range(count)]


def made(folder: Path, *sides: list[Record]) -> Any:
    done = compare_logs(folder, *sides)
    assert done.code == 0, done.err
    return done.json


class TestUnpaired:
    def test_a_better_version(self, tmp_path: Path) -> None:
        """120 of 200 and 160 of 200: 60 % and 80 %."""
        found = made(tmp_path, side(120, 200, "a"), side(160, 200, "b"))
        assert claims(found) == {"outcome.success": "better"}
        assert found["verdict"] == "better"
        claim = found["claims"][0]
        assert claim["difference"] == pytest.approx(0.2)
        # Wilson: 0.6 is 0.531 to 0.665, 0.8 is 0.739 to 0.849. MOVER: 0.2 ∓ √(0.061² + 0.065²), √(0.049² + 0.069²)
        assert (claim["low"], claim["high"]) == (pytest.approx(0.111, abs=0.002), pytest.approx(0.285, abs=0.002))
        assert (claim["n"], claim["paired"]) == (200, False)
        assert "no scenarios in the logs" in found["pairing"]

    def test_no_change(self, tmp_path: Path) -> None:
        found = made(tmp_path, side(140, 200, "a"), side(141, 200, "b"))
        assert (found["verdict"], found["claims"]) == ("no_clear_difference", [])
        assert "No clear difference yet in whether v2 completes more chats than v1" in found["sentences"][0]

    def test_figures_with_too_few_values(self, tmp_path: Path) -> None:
        """Eight chats of two tasks: two independent values, fewer than 5. The sides do have the figure in common."""
        chats = [ended(f"{number}", True, scenario_id=f"s{number % 2}") for number in range(8)]
        found = made(tmp_path, chats, chats)
        said = " ".join(found["sentences"])
        assert "in common" not in said
        assert re.search(r"No figure of v2 can be compared with v1, such as .*: fewer than 5", said)

    def test_what_would_decide(self, tmp_path: Path) -> None:
        """60 and 70 of 100, 65 of 100 together: the squared error is 2 × 0.65 × 0.35 ÷ 99 = 0.00460.

        Two figures of importance 10 and 8: the level is 0.05 × 10 ÷ 18 = 0.0278, two-sided 2.20 standard errors. With
        0.84 for 80 % power, 100 × 3.04² × 0.0046 ÷ 0.1² = 425 a side, less the 100.
        """
        found = row(made(tmp_path, side(60, 100, "a"), side(70, 100, "b")), "outcome.success")
        assert found["finding"] == "open"
        assert found["needs"] == pytest.approx(325, abs=3)
        assert "more chats a side" in found["remark"]

    def test_too_few(self, tmp_path: Path) -> None:
        found = made(tmp_path, side(1, 3, "a"), side(3, 3, "b"))
        assert (found["verdict"], found["claims"]) == ("nothing_to_compare", [])
        assert "too few" in found["notes"][0]

    def test_the_mix_moved(self, tmp_path: Path) -> None:
        """Within easy 90 % and hard 30 % in both; together 78 % and 42 %."""
        first = cells((EASY, 160, 144), (HARD, 40, 12))
        second = [{**one, "id": f"b-{one['id']}"} for one in cells((EASY, 40, 36), (HARD, 160, 48))]
        found = made(tmp_path, first, second)
        assert claims(found) == {}
        assert row(found, "outcome.success")["within"] == "domain"
        assert [one["sentence"] for one in found["mix"]] == ["v2 has more chats with domain hard: 80 %, was 20 %"]

    def test_the_slowest_of_another_mix(self, tmp_path: Path) -> None:
        """Easy waits are 1 s, hard ones 6 s, in both; the second has more hard chats: nothing got slower."""
        sides = [
            [
                timed(f"{name}{kind}{n}", *turns(1, wait + 0.01 * (n % 7)), resolved=True, domain=kind)
                for kind, size, wait in (("easy", easy, 1.0), ("hard", 60 - easy, 6.0))
                for n in range(size)
            ]
            for name, easy in (("a", 57), ("b", 20))
        ]
        assert claims(made(tmp_path, *sides)) == {}

    def test_a_group_that_collapsed_is_in_the_answer(self, tmp_path: Path) -> None:
        """Refunds fall from 27 to 1 of 30, the other 270 stay as they are."""
        kinds = [{"domain": "refunds"}, {"domain": "booking"}]
        first = cells((kinds[0], 30, 27), (kinds[1], 270, 190))
        second = [{**one, "id": f"b-{one['id']}"} for one in cells((kinds[0], 30, 1), (kinds[1], 270, 190))]
        found = made(tmp_path, first, second)
        assert found["verdict"] == "worse"
        assert any(one.startswith("In domain refunds: worse") for one in found["sentences"])

    def test_a_difference_inside_of_one_group(self, tmp_path: Path) -> None:
        """Booking falls from 90 to 50 of 100, billing rises from 50 to 90: together nothing moved."""
        kinds = [{"domain": "booking"}, {"domain": "billing"}]
        first = cells((kinds[0], 100, 90), (kinds[1], 100, 50))
        second = [{**one, "id": f"b-{one['id']}"} for one in cells((kinds[0], 100, 50), (kinds[1], 100, 90))]
        found = made(tmp_path, first, second)
        assert claims(found) == {}
        groups = {one["by"]["domain"]: one["figure"]["finding"] for one in found["groups"]}
        assert groups == {"booking": "worse", "billing": "better"}

    def test_a_small_difference_is_called_small(self, tmp_path: Path) -> None:
        """Waits of 1.00 to 1.06 s, and 0.02 s longer: clear, but 2 % where 5 % matter."""
        waits = [
            [timed(f"{name}{n}", *turns(1, wait + 0.01 * (n % 7)), resolved=True) for n in range(60)]
            for name, wait in (("a", 1.0), ("b", 1.02))
        ]
        found = made(tmp_path, *waits)
        (claim,) = [one for one in found["claims"] if one["metric"] == "timing.response_latency"]
        assert (claim["verdict"], claim["small"]) == ("worse", True)
        assert found["verdict"] == "no_clear_difference"


class TestMissing:
    def test_outcomes_that_one_side_does_not_know(self, tmp_path: Path) -> None:
        """The second leaves the label out where it is lost: 120 of 120 known ones are good."""
        second = [
            one if one["resolved"] else {k: v for k, v in one.items() if k != "resolved"} for one in side(120, 200, "b")
        ]
        found = made(tmp_path, side(120, 200, "a"), second)
        assert claims(found) == {}
        assert row(found, "outcome.success")["remark"] == (
            "the outcome is known for 120 of 200 of v2 and 200 of 200 of v1"
        )

    def test_other_labels_are_not_compared(self, tmp_path: Path) -> None:
        first = write(tmp_path / "a", side(20, 40, "a"))
        second = write(tmp_path / "b", [{**one, "rating": 5} for one in side(40, 40, "b")])
        convoscope_here("score", first, "--label", "resolved", *METRICS, "--out", tmp_path / "v1")
        convoscope_here("score", second, "--label", "rating >= 4", *METRICS, "--out", tmp_path / "v2")
        found = convoscope_here("compare", tmp_path / "v1", tmp_path / "v2", "--json").json
        outcome = row(found, "outcome.success")
        assert outcome["finding"] == "not_compared"
        assert "other labels" in outcome["remark"]
        assert "not compared: the sides have other labels" in found["sentences"][0]
        assert (found["pairs"], found["groups"]) == ([], [])

    def test_other_settings_of_reading_claim_nothing(self, tmp_path: Path) -> None:
        """The same chats; in the second run a word of a result means failure."""
        records = [
            {
                "id": f"c{n}",
                "messages": [
                    {"role": "user", "content": f"Is item {n} there?"},
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {"id": "t", "type": "function", "function": {"name": "stock", "arguments": "{}"}}
                        ],
                    },
                    {"role": "tool", "tool_call_id": "t", "content": "NO_STOCK" if n % 2 else "found 3 items"},
                    {"role": "assistant", "content": "Let me see."},
                ],
            }
            for n in range(40)
        ]
        logs = write(tmp_path / "logs", records)
        convoscope_here("score", logs, "-m", "tools.success", "--out", tmp_path / "v1")
        convoscope_here("score", logs, "-m", "tools.success", "--tool-failed", "NO_STOCK", "--out", tmp_path / "v2")
        found = convoscope_here("compare", tmp_path / "v1", tmp_path / "v2", "--json").json
        assert found["claims"] == []
        assert any("read with other settings: tool_failed" in note for note in found["notes"])

    def test_a_figure_of_one_side(self, tmp_path: Path) -> None:
        """Only the second has times."""
        second = [timed(f"b{n}", *turns(1, 1.0), resolved=True) for n in range(20)]
        found = row(made(tmp_path, side(20, 20, "a"), second), "timing.response_latency")
        assert (found["finding"], found["difference"]) == ("not_compared", None)
        assert found["remark"].startswith("v1: not measured")


class TestPaired:
    def scenarios(self, prefix: str, good: Any) -> list[Record]:
        return [
            ended(f"{prefix}{number}-{trial}", good(number, trial), scenario_id=f"s{number}", trial=str(trial))
            for number in range(20)
            for trial in range(2)
        ]

    def test_pairs_of_scenarios(self, tmp_path: Path) -> None:
        """Even scenarios fail before; of them the first six are fixed, and s1 breaks in trial 0."""
        first = self.scenarios("a", lambda number, trial: number % 2 == 1)
        second = self.scenarios(
            "b", lambda number, trial: (number % 2 == 1 or number < 12) and (number, trial) != (1, 0)
        )
        found = made(tmp_path, first, second)
        outcome = row(found, "outcome.success")
        assert (outcome["paired"], outcome["n"]) == (True, 20)
        # before 10 of 20; after 16 of 20 but for half of s1: (16 − 0.5) ÷ 20
        assert (outcome["before"], outcome["after"]) == (0.5, pytest.approx(0.775))
        assert (found["shared"], found["fixed"], found["broken"]) == (20, 12, 1)
        first_pair = found["pairs"][0]
        assert (first_pair["moved"], first_pair["scenario"], first_pair["trial"]) == ("broken", "s1", "0")
        assert (first_pair["before"], first_pair["after"]) == ("a1-0", "b1-0")

    def test_trials_of_one_side_alone_are_left_out(self, tmp_path: Path) -> None:
        """The second has a third trial that always fails: pairs are of the two that both have."""
        first = self.scenarios("a", lambda number, trial: True)
        second = first_and_third(self.scenarios("b", lambda number, trial: True))
        found = made(tmp_path, first, second)
        outcome = row(found, "outcome.success")
        assert (outcome["before"], outcome["after"]) == (1.0, 1.0)
        assert found["pairing"] == "20 scenarios in both, compared pair by pair; left out: 20 trials of one side alone"

    def test_ids_name_tests_where_users_open_alike(self, tmp_path: Path) -> None:
        sides = [
            [
                timed(f"case-{n}", ("user", "Where is order", 0.0), ("assistant", "Here.", 1.0), resolved=n < good)
                for n in range(40)
            ]
            for good in (20, 30)
        ]
        found = made(tmp_path, *sides)
        assert found["pairing"].startswith("40 conversations of the same id in both")
        assert found["fixed"] == 10
        assert row(found, "outcome.success")["paired"] is True

    def test_a_greeting_names_no_test(self, tmp_path: Path) -> None:
        """Ids return, and all users say the same first: that is no sign that the conversations are the same."""
        found = made(tmp_path, side(20, 40, "case-"), side(30, 40, "case-"))
        assert row(found, "outcome.success")["paired"] is False
        assert found["pairs"] == []

    def test_numbers_of_other_conversations_name_no_tests(self, tmp_path: Path) -> None:
        """Both sides count from 0, but users say other things."""
        sides = [
            [
                timed(f"{n}", ("user", f"{word} {n * prime % 97}", 0.0), ("assistant", "Yes.", 1.0), resolved=n % 3 > 0)
                for n in range(30)
            ]
            for word, prime in (("Where is order", 31), ("Cancel booking", 57))
        ]
        for index, records in enumerate(sides):
            for one in records:
                one["messages"][0]["content"] = f"{one['messages'][0]['content']} {index}"  # type: ignore[index]
        found = made(tmp_path, *sides)
        assert row(found, "outcome.success")["paired"] is False

    def test_few_shared_scenarios_are_no_pairs(self, tmp_path: Path) -> None:
        """6 of 40 scenarios are shared: what they say is not what the runs say."""
        first = [ended(f"a{n}", n % 2 > 0, scenario_id=f"s{n}") for n in range(40)]
        second = [ended(f"b{n}", n % 2 > 0, scenario_id=f"s{n + 34}") for n in range(40)]
        found = made(tmp_path, first, second)
        assert row(found, "outcome.success")["paired"] is False
        assert found["pairing"].startswith("only 6 scenarios in both")


def first_and_third(records: list[Record]) -> list[Record]:
    """With a third trial of each scenario, which fails."""
    third = [ended(f"c{number}", False, scenario_id=f"s{number}", trial="2") for number in range(20)]
    return [*records, *third]


class TestCommand:
    def test_three_sides(self, tmp_path: Path) -> None:
        found = made(tmp_path, side(60, 100, "a"), side(90, 100, "b"), side(30, 100, "c"))
        verdicts = {one["side"]: one["verdict"] for one in found["claims"] if one["metric"] == "outcome.success"}
        assert verdicts == {"v2": "better", "v3": "worse"}
        assert found["verdict"] == "mixed"

    def test_groups_of_one_run(self, tmp_path: Path) -> None:
        records = [*side(30, 60, "a", version="v9"), *side(55, 60, "b", version="v10")]
        logs = write(tmp_path / "logs", records)
        convoscope_here("score", logs, "--label", "resolved", *METRICS, "--by", "version", "--out", tmp_path / "run")
        found = convoscope_here("compare", tmp_path / "run", "--by", "version", "--json").json
        assert [one["name"] for one in found["sides"]] == ["v9", "v10"]
        assert claims(found) == {"outcome.success": "better"}
        turned = convoscope_here("compare", tmp_path / "run", "--by", "version=v10,v9", "--json").json
        assert claims(turned) == {"outcome.success": "worse"}

    def test_logs_are_scored_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "old", side(20, 40, "a"))
        write(tmp_path / "new", side(38, 40, "b"))
        comparison = compare("old", "new", label="resolved", metrics=["outcome.success"])
        assert [one.name for one in comparison.sides] == ["old", "new"]
        assert [one.verdict for one in comparison.claims] == ["better"]
        assert "new completes more chats than old" in (comparison._repr_html_() or "")

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("compare", "{run}"), "nothing to compare it with"),
            (("compare", "{run}", "{run}"), "named twice"),
            (("compare", "{run}", "--by", "versoin"), "did you mean version?"),
            (("compare", "{run}", "--by", "version=v1,v3"), "no version 'v3'"),
            (("compare", "{run}", "--by", "domain"), "only 'x'"),
            (("compare", "{run}", "--by", "version", "--least", "much"), "is no size"),
            (("compare", "{run}", "nowhere"), "nowhere"),
        ],
    )
    def test_bad_usage(self, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
        records = [ended(f"{v}{n}", True, version=v, domain="x") for v in ("v1", "v2") for n in range(6)]
        run = tmp_path / "run"
        convoscope_here("score", write(tmp_path / "logs", records), "-m", "outcome.success", "--out", run)
        done = convoscope_here(*(one.replace("{run}", str(run)) for one in arguments))
        assert done.code == 2
        assert words in done.err

    def test_the_terminal_fits_80_columns(self, tmp_path: Path) -> None:
        hostile = "v2\x1b[31m<b>" + "long " * 30
        records = [*side(30, 60, "a", version="v1"), *side(55, 60, "b", version=hostile)]
        run = tmp_path / "run"
        convoscope_here(
            "score", write(tmp_path / "logs", records), "--label", "resolved", "--by", "version", "--out", run
        )
        for options in ((), ("--full",)):
            done = convoscope_here("compare", run, "--by", "version", *options)
            assert done.code == 0, done.err
            assert max(map(len, done.out.splitlines())) <= 80
            assert "\x1b" not in done.out

    def test_markdown_holds_no_markup_of_logs(self, tmp_path: Path) -> None:
        records = [*side(30, 60, "a", version="v1"), *side(55, 60, "b", version="<img src=x>@all")]
        run, file = tmp_path / "run", tmp_path / "c.md"
        convoscope_here(
            "score", write(tmp_path / "logs", records), "--label", "resolved", *METRICS, "--by", "version", "--out", run
        )
        assert convoscope_here("compare", run, "--by", "version=v1,<img src=x>@all", "--markdown", file).code == 0
        text = file.read_text(encoding="utf-8")
        assert "| chats that reach their goal | 50.0 % | 91.7 % | +41.7 pts |" in text
        assert "<img" not in re.sub(r"`[^`]*`", "", text)  # a code span is no markup

    def test_python_refuses_one_run(self) -> None:
        with pytest.raises(UsageError, match="two runs"):
            compare()


def test_the_same_answer_every_time(tmp_path: Path) -> None:
    """Permutations have a fixed seed."""
    lot = random.Random(1)
    sides = [[ended(f"{name}{n}", lot.random() < share) for n in range(40)] for name, share in (("a", 0.5), ("b", 0.8))]
    found = made(tmp_path, *sides)
    again = convoscope_here("compare", tmp_path / "v1", tmp_path / "v2", "--json").json
    assert found == again
