"""Saved models edited by an attacker who puts the checksums right: the files, the edits, what is asked of what loads, workers."""
