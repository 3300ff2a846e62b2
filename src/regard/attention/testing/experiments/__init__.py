"""Experiments of an audit: each looks for one fault or two, and yields those it has found."""
