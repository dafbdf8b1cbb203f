"""Naive twins of the fast code: the definition, written down as slowly and plainly as possible. A module a room."""
