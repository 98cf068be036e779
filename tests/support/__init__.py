"""Helpers that tests share: real and scripted peers, fakes, sample values, and programs that tests run.

A module is named after the thing it provides. Fixtures stay in the conftest.py of the tests that use them. A helper
with one user lives in that test file.
"""
