"""Writes the phrasebook's file into the package: ``make phrasebook``."""

from regard.text.phrasebook import FILE
from tools.phrasebook.corpus import draw
from tools.phrasebook.writing import compressed, contents

if __name__ == "__main__":
    FILE.write_bytes(compressed(contents(draw())))
    print(f"{FILE}: {FILE.stat().st_size:,} bytes")
