"""Calls of ``attend``: the choice of a backend for each, the plan that follows, and its memory."""
