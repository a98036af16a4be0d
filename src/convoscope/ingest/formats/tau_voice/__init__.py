"""Full-duplex simulations of τ-voice."""
