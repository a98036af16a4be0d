"""Did it get better, and are we sure? Runs, or groups of one run, compared figure by figure."""
