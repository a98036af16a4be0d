"""The page: one HTML file that opens from disk and shows a run to a person."""

from convoscope.report.page.page import (
    MAX_CONVERSATIONS,
    MAX_MB,
    LiveCall,
    LivePage,
    Written,
    write_compare_page,
    write_news,
    write_page,
)
from convoscope.report.page.sound import LINKED, AudioOptions

__all__ = [
    "LINKED",
    "MAX_CONVERSATIONS",
    "MAX_MB",
    "AudioOptions",
    "LiveCall",
    "LivePage",
    "Written",
    "write_compare_page",
    "write_news",
    "write_page",
]
