"""The programs regard is measured beside, and how each one is driven."""
