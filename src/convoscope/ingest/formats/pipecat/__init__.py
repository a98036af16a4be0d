"""Records and logs of Pipecat bots."""
