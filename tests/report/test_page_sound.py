"""What the page has of recordings: marks from details, addresses, clocks, copies, what fits into the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import convoscope
from convoscope.analysis.answer import rank_reasons
from convoscope.conversation import AudioFile, Clock, Conversation, Time, Track, Utterance, to_json
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    LOWER,
    SHARE,
    Observation,
    TenPoints,
    measured,
    metric,
    ratio,
    unmeasured,
)
from convoscope.metrics.declaration import SUM_OVER_SUM
from convoscope.report.page.call import CallMaker, CallRank
from convoscope.report.page.marks import mark_chips, marks_of
from convoscope.report.page.sound import CallSound, SoundMaker, link
from convoscope.report.page.sound_files import AudioCopies, EmbeddedAudio, smallest
from convoscope.report.page.words import SpokenWord, TextDifference, ThreeTexts, text_block
from convoscope.report.speech_lanes import Ruler, clock_text, speech_lanes
from convoscope.runs.conversations import KeptConversation, records
from convoscope.scores.observation import Score
from support.chats import agent, chat, user
from support.sounds import RATE as SOUND_RATE
from support.sounds import call_of, np, said, soundfile, write

RATE = 8000


def tone(path: Path, seconds: float, channels: int = 1, **kind: Any) -> Path:
    at = np.arange(round(seconds * RATE)) / RATE
    one = 0.3 * np.sin(2 * np.pi * 300 * at)
    soundfile.write(path, np.stack([one] + [0.5 * np.roll(one, 7)] * (channels - 1), axis=1), RATE, **kind)
    return path


def kept(conversation: Conversation, *observations: Observation) -> KeptConversation:
    scores = [
        Score(conversation="c", metric="audio.x", variant="", observation=observation) for observation in observations
    ]
    return KeptConversation(0, conversation, [], scores, [])


def sound_of(conversation: Conversation, page: Path, *observations: Observation, **options: Any) -> CallSound | None:
    maker = SoundMaker(page, "call", **options)
    return maker.of(kept(conversation, *observations), speech_lanes(conversation, Ruler(conversation)), [])


class TestMarks:
    def test_what_is_no_moment_is_not_shown(self) -> None:
        given: list[Any] = [
            {"start": 2.0, "end": 2.5, "kind": "dropout", "text": "a", "more": 1},
            {"start": 1.0, "kind": "click"},
            {"start": 3.0, "end": 1.0, "kind": "dropout"},  # ends before it begins: a moment
            {"start": float("nan"), "kind": "click"},
            {"start": 1.0, "end": float("inf"), "kind": "click"},
            {"start": "1.0", "kind": "click"},
            {"kind": "click"},
            {"start": 1.0, "kind": ""},
            {"start": 5.0, "end": 6.0, "kind": "quality", "value": 3.5},
            {"start": 5.0, "end": 6.0, "kind": "quality", "value": 7},
            "dropout",
            None,
        ]
        talk = chat(agent("a", sound=[(1, 2)]), user("b", sound=[(3, 4)]))
        record = kept(talk, measured(talk, 1, details={"moments": given}), measured(talk, 1, details={"moments": 7}))
        marks = marks_of(record, lambda second: second - 1, {"agent": 0, "user": 1})
        assert [(one.kind, one.start, one.end) for one in marks.marks] == [
            ("click", 0.0, 0.0),
            ("dropout", 1.0, 1.5),
            ("dropout", 2.0, 2.0),
        ]
        assert marks.quality == ((4.0, 5.0, 3.5, False),)
        assert [(one.kind, one.text, one.seconds) for one in mark_chips(marks, None, [])] == [
            ("click", "1 click", (0.0,)),
            ("dropout", "2 dropouts, 0.5 s", (1.0, 2.0)),
            ("quality", "sound quality (MOS) worst 3.50", (4.0,)),
        ]

    def test_a_mark_is_in_the_lane_of_who_speaks(self) -> None:
        """The named speaker; else who says the utterance that was observed; else the agent."""
        talk = chat(user("b", sound=[(3, 4)]), agent("a", sound=[(5, 6)]))
        said = talk.timeline[0]
        assert isinstance(said, Utterance)
        moment = {"start": 3.0, "kind": "click"}
        record = kept(
            talk,
            measured(talk, 1, details={"moments": [{**moment, "speaker": "user"}]}),
            measured(said, 1, details={"moments": [{**moment, "start": 4.0}]}),
            measured(talk, 1, details={"moments": [{**moment, "start": 5.0}]}),
        )
        marks = marks_of(record, float, {"user": 0, "agent": 1}).marks
        assert [(one.start, one.lane) for one in marks] == [(3.0, 0), (4.0, 0), (5.0, 1)]

    def test_only_the_agents_quality_by_the_metric_with_a_mark_is_red(self) -> None:
        """3.8 is 7 of 10 points. Through a telephone nothing is red, and the user's sound has no bar."""
        talk = chat(user("b", sound=[(3, 4)]), agent("a", sound=[(5, 6)]))
        rated = measured(talk, 3, details={"moments": [{"start": 5.0, "kind": "quality", "value": 3.7}]})
        broken = measured(talk, 3, details={"moments": [{"start": 3.0, "kind": "dropout"}]})

        def marks(name: str, variant: str, observation: Observation) -> Any:
            score = Score(conversation="c", metric=name, variant=variant, observation=observation)
            return marks_of(KeptConversation(0, talk, [], [score], []), float, {"user": 0, "agent": 1})

        assert marks("audio.mos", "", rated).quality == ((5.0, 5.0, 3.7, True),)
        assert marks("audio.mos", "telephone", rated).quality == ((5.0, 5.0, 3.7, False),)
        assert marks("audio.mos", "user", rated).quality == ()
        assert marks("audio.audio_breakage", "user", broken).marks[0].lane == 0
        assert marks("audio.audio_breakage", "", broken).marks[0].lane == 1


class TestSilence:
    TALK = chat(
        agent("a", sound=[(0, 4)]),
        user("b", sound=[(5, 9)]),
        agent("c", sound=[(13, 15)]),
        clocks=[Clock(id="audio", kind="audio", offset=0.0)],
    )

    def shown(self, tmp_path: Path, pause: float) -> Any:
        """A call as the page shows it: two turns, a pause in the sound, and words of the user that no log has."""
        greeting = said("Good morning, this is the harbour office. What can I do for you?", "slt")
        question = said("Hello? Are you still there? Can you hear me at all, or is it the line?", "rms")
        silent = np.zeros(round(pause * SOUND_RATE), np.float32)
        sides = [np.concatenate([greeting, silent, 0 * question]), np.concatenate([0 * greeting, silent, question])]
        path = write(tmp_path / "c.wav", *sides)
        heard = len(greeting) / SOUND_RATE
        talk = chat(
            agent("Good morning, this is the harbour office. What can I do for you?", sound=[(0, heard)]),
            user("Hello?", sound=[(heard + 0.2, heard + 0.4)]),
            clocks=[Clock(id="audio", kind="audio", offset=0.0)],
            recording=AudioFile(tracks=(Track(path=str(path), channels=("agent", "user")),)),
        )
        log = tmp_path / "calls.jsonl"
        log.write_bytes(to_json(talk) + b"\n")
        run = convoscope.score(log, metrics=["audio.longest_silence"], out=tmp_path / "run", workers=1)
        rank = CallRank("unknown", rank_reasons(run, [0], [])[0], ())
        maker = CallMaker(run.summary, "call", sounds=SoundMaker(tmp_path / "page.html", "call"))
        return maker.call(next(iter(records(run, [0]))), rank)

    def test_the_sound_says_what_is_silent(self, tmp_path: Path) -> None:
        """The log has the user's words 0.2 s after the agent's; in the sound they come 6 s later."""
        call = self.shown(tmp_path, 6.0)
        [silence] = call.silences
        # Voice activity is sure to 0.2 s or so at either end.
        assert silence.end - silence.start == pytest.approx(6.0, abs=0.5)
        # The agent spoke last: the user owes the answer, and the mark is in the user's lane.
        assert silence.owes == "user"
        assert call.caption.endswith(f"longest silence {silence.text} at {clock_text(silence.start)}")
        assert [one.text for one in call.sound.chips] == [f"1 silence, longest {silence.text}"]
        assert call.sound.marks == ()
        assert [one.label for one in call.bad] == ["Longest silence"]
        assert [line.kind for line in call.lines] == ["words", "words"]

    @pytest.mark.parametrize(
        ("logged", "heard", "kinds"),
        [
            # The sound is silent from 6 s to 10 s. Its middle is 8 s.
            (9.8, None, ["words", "silence", "words", "words"]),  # logged 0.2 s before the silence ends
            (8.5, None, ["words", "silence", "words", "words"]),
            (6.2, None, ["words", "words", "silence", "words"]),  # a word at its beginning does not end it
            (6.2, 10.0, ["words", "silence", "words", "words"]),  # nor is it one, where the sound has it at its end
            (9.8, 6.0, ["words", "words", "silence", "words"]),
        ],
    )
    def test_a_silence_is_listed_before_the_turn_that_ends_it(
        self, tmp_path: Path, logged: float, heard: float | None, kinds: list[str]
    ) -> None:
        recording = AudioFile(tracks=(Track(path=str(tone(tmp_path / "c.wav", 20)), started=Time(0.0, "audio")),))
        spans = [(0, 6), (logged, 12), (12.5, 14)]
        talk = chat(
            *(agent("a", sound=[span]) for span in spans),
            clocks=[Clock(id="audio", kind="audio", offset=0.0)],
            recording=recording,
        )
        moments = {"moments": [{"start": 6.0, "end": 10.0, "kind": "silence"}]}
        silence = Score(
            conversation="c",
            metric="audio.longest_silence",
            variant="",
            observation=measured(talk, 4.0, details=moments),
        )
        late = () if heard is None else (_start(talk.utterances[1], logged - heard, heard),)
        record = KeptConversation(0, talk, [], [silence, *late], [])
        run = convoscope.score([talk], metrics=["conversation.turns"], out=tmp_path / "run", workers=1)
        maker = CallMaker(run.summary, "call", sounds=SoundMaker(tmp_path / "page.html", "call"))
        call = maker.call(record, CallRank("unknown", rank_reasons(run, [0], [])[0], ()))
        assert [line.kind for line in call.lines] == kinds

    def test_a_short_silence_is_no_mark(self, tmp_path: Path) -> None:
        call = self.shown(tmp_path, 0.8)
        assert (call.silences, call.sound.chips, call.bad) == ((), (), ())
        assert "silence" not in call.caption

    def test_the_log_goes_on_where_the_recording_ends(self, tmp_path: Path) -> None:
        path = tone(tmp_path / "c.wav", 10.0)
        clock = Time(0.0, "audio")
        track = Track(path=str(path), started=clock)
        shown = sound_of(
            msgspec.structs.replace(self.TALK, recording=AudioFile(tracks=(track,))), tmp_path / "page.html"
        )
        assert shown is not None
        assert shown.caption.endswith("the recording ends at 0:10.0, and the log goes on to 0:15.0")


LINES = (
    ("assistant", "Thank you for calling the city museum, how may I help you?", "slt"),
    ("user", "I would like to know when you open on Sunday.", "rms"),
    ("assistant", "On Sunday we open at ten and close at six in the evening.", "slt"),
    ("user", "And is there a discount for students?", "rms"),
    ("assistant", "Students pay half, if they show their card.", "slt"),
)


def test_labels_that_the_times_contradict_put_no_one_on_a_channel(tmp_path: Path) -> None:
    left, right, times = call_of(*((role, said(text, voice)) for role, text, voice in LINES))
    path = write(tmp_path / "c.wav", left, right)
    turns = [(agent if role == "assistant" else user)("x", sound=[(start, end)]) for role, start, end in times]
    clocks = [Clock(id="audio", kind="audio", offset=0.0)]

    def shown(*channels: str) -> Any:
        recording = AudioFile(tracks=(Track(path=str(path), channels=channels),))
        log = tmp_path / f"{channels[0]}.jsonl"
        log.write_bytes(to_json(chat(*turns, clocks=clocks, recording=recording)) + b"\n")
        run = convoscope.score(log, metrics=["audio.agent_talk_share"], out=tmp_path / channels[0], workers=1)
        record = next(iter(records(run, [0])))
        lanes = speech_lanes(record.conversation, Ruler(record.conversation))
        return SoundMaker(tmp_path / "page.html", "call").of(record, lanes, [])

    right_labels = shown("agent", "user")
    assert right_labels.caption == "recording, two channels"
    assert [(wave.lane is not None, wave.role) for wave in right_labels.waves] == [(True, "assistant"), (True, "user")]
    swapped = shown("user", "agent")
    assert swapped.caption.endswith("by the times of the log, its labels of the channels are the wrong way round")
    assert [(wave.lane, wave.name, wave.role) for wave in swapped.waves] == [
        (None, "channel 1", ""),
        (None, "channel 2", ""),
    ]


def test_a_channel_whose_speaker_is_given_has_the_name_of_the_role(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "examples" / "recording" / "bakery.ogg"
    run = convoscope.score(
        file,
        metrics=["conversation.turns"],
        speakers={"agent": "channel 2", "user": "channel 1"},
        out=tmp_path / "run",
        workers=1,
    )
    rank = CallRank("unknown", rank_reasons(run, [0], [])[0], ())
    shown = CallMaker(run.summary, "call").call(next(iter(records(run, [0]))), rank)
    assert shown.timeline is not None
    assert [lane.name for lane in shown.timeline.lanes] == ["Caller", "Agent"]
    assert {line.who for line in shown.lines if line.kind == "words"} == {"Caller", "Agent"}


class TestWords:
    def test_facts_are_marked_in_any_order(self) -> None:
        texts = ThreeTexts(
            [TextDifference("amount", "50", "15"), TextDifference("name", "Holm", "home")],
            "Holm, 50 and 50",
            "home, 15 and 50",
            by="x",
        )
        block = text_block(texts, "", float)
        assert block is not None
        assert block.rows == (
            ("meant", (("", ""), ("e", "Holm"), ("", ", "), ("e", "50"), ("", " and 50"))),
            ("spoken", (("", ""), ("x", "home"), ("", ", "), ("x", "15"), ("", " and 50"))),
        )
        assert block.sum == "50 arrived as 15, Holm arrived as home. Heard by x."

    def test_a_sentence_has_no_punctuation_of_the_words(self) -> None:
        block = text_block(ThreeTexts([TextDifference("amount", "50 euros", "15 euros,")], "", "", by="x"), "", float)
        assert block is not None
        assert block.sum == "50 euros arrived as 15 euros. Heard by x."

    def test_what_was_cut_off(self) -> None:
        texts = ThreeTexts([TextDifference("cut", "Both cost 18.", "")], "Two sail. Both cost 18.", "Two sail.")
        block = text_block(texts, "", float)
        assert block is not None
        assert block.rows[0][1] == (("", "Two sail. "), ("gone", "Both cost 18."), ("", ""))
        assert block.sum == "“Both cost 18” was not spoken."

    def test_what_was_not_written_at_all(self) -> None:
        block = text_block(ThreeTexts([TextDifference("code", None, "A7", "")], None, "A7", ""), "", float)
        assert block is not None
        assert block.sum == "A7 did not arrive."

    def test_nothing_is_shown_where_nothing_differs(self) -> None:
        assert text_block(ThreeTexts([], "a", "a"), "a", float) is None

    def test_when_a_shown_word_is_heard(self) -> None:
        """Words that a recogniser writes otherwise have its times where it wrote as many; other words have none."""
        heard = ["it", "leaves", "at", "8.15", "from", "the", "wrong", "quay"]
        words = [SpokenWord(text, float(at), at + 0.5) for at, text in enumerate(heard)]
        block = text_block(ThreeTexts(words=words), "It leaves at 8:20 from quay two.", lambda second: second - 1)
        assert block is not None
        assert block.rows == ()
        # it, leaves, at, 8:20 for 8.15, from, quay; "two." was not heard.
        assert [None if one is None else one[0] for one in block.words] == [-1.0, 0.0, 1.0, 2.0, 3.0, 6.0, None]


class TestAddresses:
    @pytest.mark.parametrize(
        ("name", "address"),
        [
            ("call.wav", "./call.wav"),
            ("a b#1?x%20.wav", "./a%20b%231%3Fx%2520.wav"),
            ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
            ("http:/x/y.wav", "./http%3A/x/y.wav"),
            ("../<b>'\".wav", "./../%3Cb%3E%27%22.wav"),
        ],
    )
    def test_a_name_is_never_part_of_the_address_itself(self, tmp_path: Path, name: str, address: str) -> None:
        assert link(tmp_path / name, tmp_path.resolve()) == address

    def test_a_file_that_is_no_recording_is_not_linked(self, tmp_path: Path) -> None:
        """Whatever path a log names: what is not decoded is neither linked nor copied nor embedded."""
        secret = tmp_path / "secrets.wav"
        secret.write_text("password")
        talk = chat(agent("a", sound=[(0, 1)]), recording=AudioFile(tracks=(Track(path=str(secret)),)))
        copies, embedded = AudioCopies(tmp_path), EmbeddedAudio()
        shown = sound_of(talk, tmp_path / "page.html", copies=copies, embedded=embedded)
        assert shown is not None
        assert shown.files == ()
        assert shown.problem.startswith("Recording not readable: secrets.wav")
        assert not (tmp_path / "audio").exists()
        assert embedded.blocks == []

    def test_a_recording_where_only_its_log_says_stays_where_it_is(self, tmp_path: Path) -> None:
        """Two seconds of a tone: without the mark the same file is copied, and with it neither copied nor embedded."""
        track = Track(path=str(tone(tmp_path / "private.wav", 2)))
        for extras, blocks in (({"recording_elsewhere": [track.path]}, 0), ({}, 1)):
            talk = chat(agent("a", sound=[(0, 1)]), recording=AudioFile(tracks=(track,), extras=extras))
            maker = SoundMaker(tmp_path / "page.html", "call", embedded=EmbeddedAudio())
            maker.of(kept(talk), None, [])
            assert len(maker.blocks) == blocks
            run = tmp_path / f"run-{blocks}"
            run.mkdir()
            copier = SoundMaker(tmp_path / "page.html", "call", AudioCopies(run))
            copier.of(kept(talk), None, [])
            assert len(copier.copies) == blocks
            for made in (maker, copier):
                assert any("outside the folder of the log" in note for note in made.notes) == (not blocks)


class TestClocks:
    def test_the_recording_begins_before_the_first_word(self, tmp_path: Path) -> None:
        """The agent speaks from 2 to 3 s of the recording, so on the lanes the file begins at −2 s."""
        path = tone(tmp_path / "c.wav", 4)
        talk = chat(agent("a", sound=[(2, 3)]), recording=AudioFile(tracks=(Track(path=str(path)),)))
        shown = sound_of(talk, tmp_path / "page.html", measured(talk, 1, details={"moments": [MOMENT]}))
        assert shown is not None
        assert not shown.apart
        assert [(file.src, file.start, file.seconds) for file in shown.files] == [("./c.wav", -2.0, 4.0)]
        assert [(mark.start, mark.end) for mark in shown.marks] == [(0.5, 1.0)]

    def test_a_start_on_the_clock_of_the_log(self, tmp_path: Path) -> None:
        """The recording starts 1.5 s before the first word of a log with wall clock times."""
        path = tone(tmp_path / "c.wav", 4)
        track = Track(path=str(path), started=Time(100.5, "wall"))
        talk = chat(agent("a", 102.0), clocks=(Clock(id="wall", kind="wall"),), recording=AudioFile(tracks=(track,)))
        shown = sound_of(talk, tmp_path / "page.html")
        assert shown is not None
        assert shown.files[0].start == -1.5
        assert not shown.apart

    def test_a_bare_recording_claims_no_log(self, tmp_path: Path) -> None:
        track = Track(path=str(tone(tmp_path / "c.wav", 4)))
        shown = sound_of(chat(recording=AudioFile(tracks=(track,))), tmp_path / "page.html")
        assert shown is not None
        assert shown.caption == "recording, one channel"

    def test_clocks_that_do_not_relate_are_not_mixed(self, tmp_path: Path) -> None:
        """The log has wall clock times only: second 5 of it is not second 5 of the recording."""
        path = tone(tmp_path / "c.wav", 9)
        talk = chat(agent("a", 5.0), recording=AudioFile(tracks=(Track(path=str(path)),)))
        shown = sound_of(talk, tmp_path / "page.html", measured(talk, 1, details={"moments": [MOMENT]}))
        assert shown is not None
        assert shown.apart
        assert shown.files[0].start == 0.0
        assert [(mark.start, mark.end) for mark in shown.marks] == [(2.5, 3.0)]

    def test_a_start_that_the_sound_says(self, tmp_path: Path) -> None:
        """Three turns are logged 100 s later than they sound (one 100.1 s): second 0 of the file is second 100.

        The first turn is logged at 105, so the file begins 5 s before it, and a mark at 2.5 s of the file 2.5 s before.
        """
        recording = AudioFile(tracks=(Track(path=str(tone(tmp_path / "c.wav", 20))),))
        times = [(105, 106), (108, 109), (111.1, 112)]
        talk = chat(*(agent("a", sound=[span]) for span in times), recording=recording)
        first, second, third = talk.utterances
        starts = [(first, 100.0), (second, 100.0), (third, 100.1)]
        scores = [_start(one, error) for one, error in starts]
        moment = kept(talk, measured(talk, 1, details={"moments": [MOMENT]})).scores
        record = KeptConversation(0, talk, [], [*scores, *moment], [])
        shown = SoundMaker(tmp_path / "page.html", "call").of(record, speech_lanes(talk, Ruler(talk)), [])
        assert shown is not None
        assert not shown.apart
        assert shown.files[0].start == -5.0
        assert [(mark.start, mark.end) for mark in shown.marks] == [(-2.5, -2.0)]
        assert "when it began is estimated: the sound of 3 turns fits their times" in shown.caption
        two = KeptConversation(0, talk, [], scores[:2], [])
        shown = SoundMaker(tmp_path / "page.html", "call").of(two, speech_lanes(talk, Ruler(talk)), [])
        assert shown is not None
        assert shown.apart

    def test_a_recording_of_another_call_is_called_one(self, tmp_path: Path) -> None:
        recording = AudioFile(tracks=(Track(path=str(tone(tmp_path / "c.wav", 4))),))
        talk = chat(agent("a", sound=[(0, 1)]), recording=recording)
        observation = unmeasured(talk, "log_does_not_fit_sound")
        score = Score(conversation="c", metric="audio.log_jitter", observation=observation)
        record = KeptConversation(0, talk, [], [score], [])
        shown = SoundMaker(tmp_path / "page.html", "call").of(record, speech_lanes(talk, Ruler(talk)), [])
        assert shown is not None
        assert shown.caption.endswith("the times of the log fit nowhere in it: it may be of another call")

    def test_a_log_whose_clock_is_late_plays_what_it_shows(self, tmp_path: Path) -> None:
        """Each turn is logged 2 s after its sound: the first, at 2 s, is heard at second 0, where the lanes begin.

        A clock that is 0.4 s late is left as it is: a turn may begin with silence.
        """
        recording = AudioFile(tracks=(Track(path=str(tone(tmp_path / "c.wav", 20))),))
        for late, start, words in ((2.0, 0.0, "the log's clock is 2.0 s late: moved by that"), (0.4, -2.0, "")):
            talk = chat(*(agent("a", sound=[(at, at + 1)]) for at in (2, 5, 9)), recording=recording)
            scores = [_start(one, late) for one in talk.utterances]
            scores += kept(talk, measured(talk, 1, details={"moments": [MOMENT]})).scores
            record = KeptConversation(0, talk, [], scores, [])
            shown = SoundMaker(tmp_path / "page.html", "call").of(record, speech_lanes(talk, Ruler(talk)), [])
            assert shown is not None
            assert shown.files[0].start == start
            assert [(mark.start, mark.end) for mark in shown.marks] == [(2.5 + start, 3.0 + start)]
            assert ("clock" in shown.caption) == bool(words)
            assert words in shown.caption


def _start(utterance: Utterance, error: float, start: float = 5.0) -> Score:
    observation = measured(utterance, 0.0, details={"start": start, "error": error})
    return Score(conversation="c", metric="audio.log_jitter", variant="", observation=observation)


MOMENT = {"start": 2.5, "end": 3.0, "kind": "dropout"}


class TestWithoutSound:
    def test_a_call_says_what_it_lacks(self, tmp_path: Path) -> None:
        """In a run of calls only: a chat needs no recording."""
        talk = chat(agent("a", sound=[(0, 1)]))
        shown = sound_of(talk, tmp_path / "page.html")
        assert shown is not None
        assert shown.needs == "dropouts, barge-ins, unheard words, quality: need the recording."
        assert SoundMaker(tmp_path / "page.html", "chat").of(kept(talk), speech_lanes(talk, Ruler(talk)), []) is None

    def test_a_recording_that_is_not_there(self, tmp_path: Path) -> None:
        talk = chat(agent("a", sound=[(0, 1)]), recording=AudioFile(tracks=(Track(path=str(tmp_path / "x.wav")),)))
        shown = sound_of(talk, tmp_path / "page.html")
        assert shown is not None
        assert shown.problem == "Recording not found: x.wav; --audio FOLDER says where recordings are"
        assert shown.waves == ()


class TestCopies:
    def test_one_copy_of_equal_files(self, tmp_path: Path) -> None:
        one, other = tone(tmp_path / "a.wav", 1), tone(tmp_path / "b.wav", 1)
        copies = AudioCopies(tmp_path)
        assert copies.copy(one) == copies.copy(other)
        assert copies.copy(one).read_bytes() == one.read_bytes()
        assert [path.parent.name for path in (tmp_path / "audio").iterdir()] == ["audio"]
        assert copies.left_out == 0

    def test_what_has_no_room_stays_where_it_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("convoscope.report.page.sound_files.MOST_COPIED", 20_000)
        short, long = tone(tmp_path / "a.wav", 1), tone(tmp_path / "b.wav", 2)  # 16,044 and 32,044 bytes
        copies = AudioCopies(tmp_path)
        assert copies.copy(long) == long
        assert copies.copy(short) != short
        assert copies.left_out == 1


class TestEmbedding:
    def test_speech_without_loss_only_where_it_is_smaller(self, tmp_path: Path) -> None:
        """20 s of PCM are 320,044 bytes. Ogg takes a few of them, and is as long."""
        path = tone(tmp_path / "a.wav", 20)
        made = smallest(path, 1_000_000)
        assert made is not None
        assert made.type == "audio/ogg"
        assert len(made.body) < 160_000
        (tmp_path / "a.ogg").write_bytes(made.body)
        info = soundfile.info(tmp_path / "a.ogg")
        assert abs(info.duration - 20) < 0.1
        # What is Ogg already stays as it is.
        again = smallest(tmp_path / "a.ogg", 1_000_000)
        assert again is not None
        assert again.body == made.body

    def test_a_format_that_browsers_do_not_play_is_encoded(self, tmp_path: Path) -> None:
        made = smallest(tone(tmp_path / "a.aiff", 1), 1_000_000)
        assert made is not None
        assert made.type == "audio/ogg"

    def test_what_does_not_fit_is_left_out(self, tmp_path: Path) -> None:
        assert smallest(tone(tmp_path / "a.wav", 20), 5_000) is None

    def test_the_first_that_fit(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Letters are 4/3 of the bytes: all blocks stay within the bound, and the third has no room."""
        paths = [tone(tmp_path / f"{name}.wav", 20) for name in "abc"]
        one = smallest(paths[0], 1_000_000)
        assert one is not None
        most = round(2.5 * 4 / 3 * len(one.body))
        monkeypatch.setattr("convoscope.report.page.sound_files.MOST_EMBEDDED", most)
        embedded = EmbeddedAudio()
        assert [embedded.add(path) is not None for path in paths] == [True, True, False]
        assert sum(map(len, embedded.blocks)) <= most
        assert embedded.left_out == 1


def test_a_score_below_its_pass_mark_is_not_fine(tmp_path: Path) -> None:
    """Two of five is 2.5 of 10 points; the mark is 7. The order of the conversations looks at other metrics."""

    @metric("audio.rated", version=1, observes=CONVERSATION, unit="of 5", better=HIGHER, ten=TenPoints(1.0, 5.0))
    def rated(conversation: Conversation) -> Observation:
        """How good is it?"""
        return measured(conversation, 2.0)

    log = tmp_path / "calls.jsonl"
    log.write_bytes(b"".join(to_json(chat(user("a", 1), agent("b", 2), id=name)) + b"\n" for name in "cd"))
    run = convoscope.score(log, metrics=[rated, "agent.repetition"], out=tmp_path / "run", workers=1)
    rank = CallRank("unknown", rank_reasons(run, [0], [])[0], ())
    shown = CallMaker(run.summary, "chat").call(next(iter(records(run, [0]))), rank)
    assert [(line.label, line.note) for line in shown.bad] == [("Rated", "misses its pass mark")]


def test_a_share_that_counts_is_no_yes_or_no(tmp_path: Path) -> None:
    """None of four seconds is 0.0 %, not `no`; whether a conversation reached its goal is `yes` or `no`."""

    @metric("audio.both_speak", version=1, observes=CONVERSATION, unit=SHARE, better=LOWER, reduce=SUM_OVER_SUM)
    def both_speak(conversation: Conversation) -> Observation:
        """In what share of the speech do both speak?"""
        return ratio(conversation, 0, 4)

    @metric("audio.has_hum", version=1, observes=CONVERSATION, unit=SHARE, better=LOWER)
    def has_hum(conversation: Conversation) -> Observation:
        """Is there a hum?"""
        return measured(conversation, 0)

    log = tmp_path / "calls.jsonl"
    log.write_bytes(to_json(chat(user("a", 1), agent("b", 2), id="c")) + b"\n")
    run = convoscope.score(log, metrics=[both_speak, has_hum], out=tmp_path / "run", workers=1)
    rank = CallRank("unknown", rank_reasons(run, [0], [])[0], ())
    shown = CallMaker(run.summary, "chat").call(next(iter(records(run, [0]))), rank)
    assert shown.fine == ()  # neither has a mark
    assert {line.label: line.value for line in shown.other} == {"Both speak": "0.0 %", "Has hum": "no"}


def test_a_run_without_audio_opens_no_recording(tmp_path: Path) -> None:
    path = tone(tmp_path / "c.wav", 4)
    talk = chat(agent("a", sound=[(2, 3)]), recording=AudioFile(tracks=(Track(path=str(path)),)))
    log = tmp_path / "calls.jsonl"
    log.write_bytes(to_json(talk) + b"\n")

    @metric("audio.nothing", version=1, observes=CONVERSATION, unit="count", better=LOWER)
    def nothing(conversation: Conversation) -> Observation:
        """Is there anything?"""
        return measured(conversation, 0)

    run = convoscope.score(log, metrics=[nothing], out=tmp_path / "run", workers=1, use_audio=False)
    assert "media-src" not in (run.folder / "report.html").read_text()
    convoscope.write_page(run)
    assert "media-src" in (run.folder / "report.html").read_text()
