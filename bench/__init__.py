"""Benchmarks of Handrail, most of them beside a peer. `make bench` runs all groups; `python -m bench --list` lists them."""
