"""Measurements of Handrail beside peers, one module each. `make bench` runs them all."""
