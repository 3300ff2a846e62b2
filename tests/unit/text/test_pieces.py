import pytest

from regard.text.tokenizers.pieces import join

SURFACES = ["", "⁇", "", "", " the", " ", "a", "", "", "", ""]
BYTES = {7: 0xE2, 8: 0x96, 9: 0x81, 10: 0x0A}


@pytest.mark.parametrize(
    ("ids", "text", "spans"),
    [
        ([5, 4, 6], " thea", [(0, 0), (1, 4), (4, 5)]),  # one space at the front is dropped
        ([2, 4, 1, 3, 0], "the⁇", [(0, 0), (0, 3), (3, 4), (4, 4), (4, 4)]),
        ([6, 7, 8, 9, 6], "a▁a", [(0, 1), *[(1, 2)] * 3, (2, 3)]),
        ([7, 6, 8], "\ufffda\ufffd", [(0, 1), (1, 2), (2, 3)]),
        ([7, 8, 6, 9], "\ufffd\ufffda\ufffd", [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ([6, 10, 6], "a a", [(0, 1), (1, 2), (2, 3)]),  # a byte never breaks a line
    ],
)
def test_ids_are_joined_and_bytes_of_a_character_share_its_offset(ids, text, spans):
    assert join(ids, SURFACES, BYTES) == (text, spans)
