"""Corpus BLEU of responses, by sacrebleu (dialogue, 4)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from convoscope.errors import UsageError


def corpus_bleu(responses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of all responses together, with one reference each, from 0 to 100."""
    try:
        sacrebleu = import_module("sacrebleu")
    except ImportError:
        raise UsageError("BLEU needs sacrebleu", hint="pip install 'convoscope[bleu]'") from None
    # `force` keeps it from complaining of texts that are cut into tokens, as these are.
    return float(sacrebleu.corpus_bleu(list(responses), [list(references)], force=True).score)
