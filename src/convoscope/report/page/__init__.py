"""The page: one HTML file that opens from disk and shows a run to a person."""

from convoscope.report.page.page import MAX_CONVERSATIONS, MAX_MB, Written, write_compare_page, write_page

__all__ = ["MAX_CONVERSATIONS", "MAX_MB", "Written", "write_compare_page", "write_page"]
