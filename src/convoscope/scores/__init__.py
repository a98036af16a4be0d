"""The currency of the road: what a measurement gives, how scores become fewer, what families keep beside them."""
