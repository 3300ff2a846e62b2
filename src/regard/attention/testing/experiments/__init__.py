"""Experiments of an audit: each looks for one fault or two, and yields what it has shown."""
