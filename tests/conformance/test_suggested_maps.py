"""Suggested mappings, on files of kinds that are not read: what one reads is what the facts of the file say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import convoscope
from convoscope.errors import ConvoscopeError
from convoscope.ingest.discover import find_inputs
from convoscope.ingest.mapping.suggestion import suggested_map
from convoscope.ingest.mapping.trial import is_speech

_ROLE_COUNTS = ("speakers", "froms", "roles")
"""Fields that count messages by the log's own word for who speaks."""


def _unknown(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in (".json", ".jsonl", ".traj") and path.name != "facts.json":
            try:
                known = bool(find_inputs([path]).inputs)
            except ConvoscopeError:
                known = False
            if not known:
                yield path


def test_a_mapping_is_right_or_refused(
    shared: Callable[[str], Path], ran: Callable[[str, int], None], tmp_path: Path
) -> None:
    given = refused = compared = 0
    for path in _unknown(shared("data/formats")):
        try:
            text = suggested_map([path])
        except ConvoscopeError:
            refused += 1
            continue
        given += 1
        map_file = tmp_path / "map.toml"
        map_file.write_text(text)
        conversations = list(convoscope.read(path, readers_from=map_file))
        spoken: Counter[str] = Counter()
        for one in conversations:
            roles = {speaker.id: speaker.role for speaker in one.participants}
            said = [(roles[each.speaker], each.meant()) for each in one.utterances if each.meant().strip()]
            spoken.update(role for role, _ in said)
            talk = [words for role, words in said if role in ("user", "assistant")]
            assert sum(map(is_speech, talk)) >= 0.8 * len(talk), path
        assert spoken["user"] > 0, path
        assert spoken["assistant"] > 0, path
        facts_file = path.parent / "facts.json"
        facts = json.loads(facts_file.read_text()).get(path.name, {}) if facts_file.exists() else {}
        counts = next((facts[name] for name in _ROLE_COUNTS if isinstance(facts.get(name), dict)), None)
        if counts and all(isinstance(count, int) for count in counts.values()):
            compared += 1
            assert sum(spoken.values()) == sum(counts.values()), path
    assert given
    assert refused
    ran("files with a suggested mapping", given)
    ran("files refused", refused)
    ran("mappings compared with facts", compared)
