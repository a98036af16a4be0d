"""Session reports and chat histories of LiveKit."""
