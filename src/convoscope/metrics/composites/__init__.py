"""Figures made of other figures: EVA's passes, pass@k over trials."""
