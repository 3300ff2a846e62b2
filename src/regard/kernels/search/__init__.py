"""Searches: ranking of extensions, and sampling."""
