"""How long callers and parts of the stack wait: the families `latency` and `timing`, and `voice.response_speed`."""
