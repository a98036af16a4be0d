"""Conversations get what somebody finds in them: topics, risks, actions."""
