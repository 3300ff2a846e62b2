"""Answers to any number of files: shard by shard, each whole or absent, in one process or many."""

from regard.inference.bulk.answering import BulkOptions
from regard.inference.bulk.engines import Engine, ray_engine
from regard.inference.bulk.job import BulkReport, answer_files

__all__ = ["BulkOptions", "BulkReport", "Engine", "answer_files", "ray_engine"]
