"""Readers of text files: lines, tables, records, and the examples of each kind of task."""
