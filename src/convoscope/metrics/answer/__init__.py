"""The family `answer`: an answer against the truth, and its form."""
