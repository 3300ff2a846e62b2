"""Answers to any number of files: shard by shard, each whole or absent, in one process or many."""

from regard.inference.bulk.answering import Answerer, BulkOptions, ShardReport
from regard.inference.bulk.engines import Engine, local_engine, ray_engine
from regard.inference.bulk.job import BulkReport, answer_files
from regard.inference.bulk.shards import Shard, find_shards

__all__ = [
    "Answerer",
    "BulkOptions",
    "BulkReport",
    "Engine",
    "Shard",
    "ShardReport",
    "answer_files",
    "find_shards",
    "local_engine",
    "ray_engine",
]
