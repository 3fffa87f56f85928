"""Constrained decoding: regex and JSON schema -> byte automaton -> compressed automaton -> token masks."""
