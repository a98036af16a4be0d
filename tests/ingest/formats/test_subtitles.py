"""SRT, WebVTT and SBV: cues, their times, their speakers, and what is no cue."""

from __future__ import annotations

from pathlib import Path

import pytest

from convoscope.conversation import Conversation
from convoscope.errors import NothingReadable
from support.logs import Outcome, counts, read, story, write_text


def subtitles(folder: Path, text: str, name: str = "talk.vtt") -> Outcome:
    return read(write_text(folder / name, text))


def times(conversation: Conversation) -> list[tuple[float, float]]:
    return [(one.segments[0].start, one.segments[0].end) for one in conversation.utterances if one.segments]


def test_srt(tmp_path: Path) -> None:
    talk = subtitles(
        tmp_path,
        """\
        1
        00:00:00,500 --> 00:00:07,000
        Good morning.

        2
        01:00:07,000 --> 01:00:11,890
        Two
        lines
        """,
        "talk.srt",
    ).only
    assert talk.id == "talk"
    assert story(talk) == ["unknown: Good morning.", "unknown: Two\nlines"]
    assert times(talk) == [(0.5, 7.0), (3607.0, 3611.89)]
    assert [one.id for one in talk.utterances] == ["1", "2"]


def test_voices_settings_comments_and_styles(tmp_path: Path) -> None:
    outcome = subtitles(
        tmp_path,
        """\
        WEBVTT - A title
        Language: de

        STYLE
        ::cue { color: lime }

        NOTE of the translator

        first
        00:01.000 --> 00:02.000 align:start position:0%
        <v.loud Agent Smith>Where is <b>it</b>? <v Guest>In <00:01.500><c> the</c> room &amp; bath.</v>
        """,
    )
    assert story(outcome.only) == [
        "assistant:Agent Smith: Where is it?",
        "user:Guest: In  the room & bath.",
    ]
    assert times(outcome.only) == [(1.0, 2.0), (1.0, 2.0)]
    assert outcome.only.extras == {"header": ["A title", "Language: de"], "language": "de"}
    assert outcome.report.ignored == {"blank_line": 3, "comment": 1, "style": 1}


def test_labels_of_speakers(tmp_path: Path) -> None:
    """`Note` is no speaker: it tells no role and begins one line only. `[SPEAKER_01]` is how WhisperX writes one."""
    talk = subtitles(
        tmp_path,
        """\
        WEBVTT

        00:01.000 --> 00:02.000
        Agent: Yes?

        00:02.000 --> 00:03.000
        [SPEAKER_01]: Note: it is broken.

        00:03.000 --> 00:04.000
        Note: not a name.

        00:04.000 --> 00:05.000
        Hm.

        00:05.000 --> 00:06.000
        It is late.

        00:06.000 --> 00:07.000
        Yes.
        """,
    ).only
    assert story(talk) == [
        "assistant:Agent: Yes?",
        "unknown:SPEAKER_01: Note: it is broken.",
        "unknown: Note: not a name.",
        "unknown: Hm.",
        "unknown: It is late.",
        "unknown: Yes.",
    ]


def test_where_most_cues_begin_with_a_label_all_labels_are_speakers(tmp_path: Path) -> None:
    """Three of four cues: Bob Ray and Carl Xi speak once each, and are speakers."""
    talk = subtitles(
        tmp_path,
        """\
        WEBVTT

        1
        00:01.000 --> 00:02.000
        Ann Lee: Hello

        2
        00:02.000 --> 00:03.000
        Bob Ray: Hi

        3
        00:03.000 --> 00:04.000
        and welcome

        4
        00:04.000 --> 00:05.000
        <i>Carl Xi:</i> only once
        """,
    ).only
    assert story(talk) == [
        "unknown:Ann Lee: Hello",
        "unknown:Bob Ray: Hi",
        "unknown: and welcome",
        "unknown:Carl Xi: only once",
    ]


def test_a_label_in_half_of_the_cues_or_in_a_single_one_is_text(tmp_path: Path) -> None:
    half = "1\n00:00:01,000 --> 00:00:02,000\nNote: text\n\n2\n00:00:02,000 --> 00:00:03,000\nHi\n"
    assert story(subtitles(tmp_path, half, "half.srt").only) == ["unknown: Note: text", "unknown: Hi"]
    single = "1\n00:00:01,000 --> 00:00:02,000\nNote: text\n"
    assert story(subtitles(tmp_path, single, "single.srt").only) == ["unknown: Note: text"]


def test_sbv(tmp_path: Path) -> None:
    """A comma between the times, no numbers. The second cue follows without a blank line."""
    text = "0:00:01.000,0:00:02.500\nHi, at 0:00:01.000\nyou\n1:00:02.500,1:00:03.000\nBye\n"
    talk = subtitles(tmp_path, text, "talk.sbv").only
    assert talk.id == "talk"
    assert story(talk) == ["unknown: Hi, at 0:00:01.000\nyou", "unknown: Bye"]
    assert times(talk) == [(1.0, 2.5), (3602.5, 3603.0)]


def test_cues_without_a_blank_line_between(tmp_path: Path) -> None:
    """A line of text before times stays text; a number is the id of the next cue."""
    talk = subtitles(
        tmp_path,
        """\
        WEBVTT

        00:01.000 --> 00:02.000
        one
        00:02.000 --> 00:03.000
        two
        3
        00:03.000 --> 00:04.000
        three
        """,
    ).only
    assert story(talk) == ["unknown: one", "unknown: two", "unknown: three"]


def test_a_broken_cue_costs_only_its_times(tmp_path: Path) -> None:
    outcome = subtitles(
        tmp_path,
        """\
        1
        00:00:01,000 --> 00:00:02,000
        good

        2
        00:00:02,000 --> soon
        no end

        3
        00:00:09,000 --> 00:00:03,000
        backwards

        no times at all

        5
        00:00:05,000 --> 00:00:06,000
        good again
        """,
        "talk.srt",
    )
    assert story(outcome.only) == [
        "unknown: good",
        "unknown: no end",
        "unknown: backwards",
        "unknown: no times at all",
        "unknown: good again",
    ]
    assert times(outcome.only) == [(1.0, 2.0), (5.0, 6.0)]
    assert counts(outcome.report.set_aside) == {"cue_without_times": 2, "cue_ends_before_it_starts": 1}


def test_no_words_at_all_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(NothingReadable, match="has no cue with words"):
        subtitles(tmp_path, "WEBVTT\n\n00:01.000 --> 00:02.000\n\n")
