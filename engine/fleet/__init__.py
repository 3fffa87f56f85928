"""Several engines on one virtual clock, and the router before them."""
