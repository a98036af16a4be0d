"""Where the work is done. An engine maps a function over partitions, in any order."""
