"""The family `interaction`: turn-taking in full-duplex speech."""
