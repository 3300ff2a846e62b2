"""The documentation site: ``python -m tools.website`` puts its pages together and builds it."""
