"""Pronunciations of the CMU dictionary, and how far they are apart."""

import pytest

from convoscope.audio.phones import phone_errors, phone_names, pronunciations


class TestAWord:
    def test_has_its_ways(self) -> None:
        # The dictionary: READ  R EH1 D, and R IY1 D.
        assert {phone_names(way) for way in pronunciations("read")} == {"R EH D", "R IY D"}

    @pytest.mark.parametrize(("word", "end"), [("anna's", "N AH Z"), ("jack's", "AE K S"), ("james's", "M Z IH Z")])
    def test_may_be_a_genitive(self, word: str, end: str) -> None:
        assert phone_names(pronunciations(word)[0]).endswith(end)

    def test_may_be_a_letter(self) -> None:
        assert "EY" in {phone_names(way) for way in pronunciations("a")}
        assert [phone_names(way) for way in pronunciations("k")] == ["K EY"]

    @pytest.mark.parametrize("word", ["zqx", "", "142", "naïve"])
    def test_may_be_unknown(self, word: str) -> None:
        assert list(pronunciations(word)) == []


class TestErrors:
    def test_are_none_where_it_sounds_alike(self) -> None:
        # LEICESTER and LESTER are both L EH S T ER: 5 phones.
        found = phone_errors(["leicester"], ["lester"])
        assert found is not None
        assert (found.errors, found.phones) == (0, 5)

    def test_are_counted(self) -> None:
        # F IH F T IY N, F IH F T IY: the last of six is missing.
        found = phone_errors(["fifteen"], ["fifty"])
        assert found is not None
        assert (found.errors, found.phones, found.wanted, found.spoken) == (1, 6, "F IH F T IY N", "F IH F T IY")

    def test_do_not_depend_on_where_words_end(self) -> None:
        found = phone_errors(["ice", "cream"], ["i", "scream"])
        assert found is not None
        assert found.errors == 0

    def test_are_unknown_where_a_word_is(self) -> None:
        assert phone_errors(["zqx"], ["lester"]) is None
        assert phone_errors(["lester"], ["zqx"]) is None
        assert phone_errors([], ["lester"]) is None
