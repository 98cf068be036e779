"""Peers that Handrail is compared with: the smallest programs that do a comparable thing."""
