"""Scripts that measure, each with a JSON record; run one as ``python -m benchmarks.NAME``."""
