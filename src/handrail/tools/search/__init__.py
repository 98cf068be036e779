"""Listing and searching files, and what is found in them."""
