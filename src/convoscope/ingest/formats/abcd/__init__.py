"""Action-Based Conversations Dataset."""
