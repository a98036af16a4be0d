"""The controlled words of topics and risks, as versioned data."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from convoscope.conversation.lazy import remembered

_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_MANY = 4096


class RiskType(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of risk, and how severe it can be."""

    description: str
    severities: tuple[str, ...]


class SemanticVocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The words that gold labels may use, and what the words of others are taken for."""

    name: str
    version: int
    topics: dict[str, tuple[str, ...]]
    """Labels by category."""
    synonyms: dict[str, str]
    """Other names of topics."""
    risks: dict[str, RiskType]
    risk_aliases: dict[str, str]
    """Other names of risk types."""
    weights: dict[str, float]
    """By severity, the heaviest first."""
    weight_without_severity: float
    assignee_roles: tuple[str, ...]

    def __post_init__(self) -> None:
        if unknown := {*self.synonyms.values()} - self.labels | {*self.risk_aliases.values()} - self.risks.keys():
            raise ValueError(f"synonyms of what is not in the vocabulary: {', '.join(sorted(unknown))}")

    @remembered
    def labels(self) -> frozenset[str]:
        """Every topic."""
        return frozenset(label for category in self.topics.values() for label in category)

    def topic(self, label: str) -> str:
        """The topic that a label means; a label outside the vocabulary stays, in its plain form."""
        plain = label_form(label)
        return self.synonyms.get(plain, plain)

    def risk(self, kind: str) -> str:
        """The risk type that a name means; one outside the list stays, in its plain form."""
        plain = label_form(kind)
        return self.risk_aliases.get(plain, plain)


@lru_cache(_MANY)
def label_form(label: str) -> str:
    """`Technical  Support` as `technical_support`: NFKC, case folded, whatever is no letter or digit is one `_`."""
    return _NOT_ALPHANUMERIC.sub("_", unicodedata.normalize("NFKC", label).casefold()).strip("_")


def _data() -> bytes:
    return files("convoscope.vocabulary").joinpath("semantic.json").read_bytes()


@cache
def semantic_vocabulary() -> SemanticVocabulary:
    """The vocabulary as it is installed."""
    return msgspec.json.decode(_data(), type=SemanticVocabulary)


@cache
def vocabulary_hash() -> str:
    """`sha256:` of the vocabulary's file, for receipts."""
    return "sha256:" + hashlib.sha256(_data()).hexdigest()
