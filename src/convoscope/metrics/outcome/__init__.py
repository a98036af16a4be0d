"""The family `outcome`: what came of a conversation."""
