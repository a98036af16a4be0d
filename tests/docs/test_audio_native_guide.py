"""The guide to `MetricContext` leaves no field out."""

from convoscope.views import MetricContext
from docs.blocks import ROOT

GUIDE = (ROOT / "docs" / "guides" / "audio-native-metrics.md").read_text()


def test_every_field_is_explained() -> None:
    assert [name for name in MetricContext.__struct_fields__ if f"`{name}" not in GUIDE] == []
