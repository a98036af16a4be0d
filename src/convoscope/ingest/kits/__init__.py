"""What several readers share: lists of messages, spans of traces, streams of events, segments of transcripts."""
