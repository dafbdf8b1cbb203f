"""Shared set-up of all tests."""

from hypothesis import settings

settings.register_profile("upturn", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("upturn")
