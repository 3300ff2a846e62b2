import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes bytes as they are, or text, compressed if the name ends in .gz."""

    def write_file(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode()
        path.write_bytes(content)
        return path

    return write_file
