from regard.text.tokenizers.pieces import join

SURFACES = ["", "⁇", "", "", " the", " ", "a", "", "", "", ""]
BYTES = {7: 0xE2, 8: 0x96, 9: 0x81, 10: 0x0A}


def test_only_one_space_at_the_front_is_dropped():
    assert join([5, 4, 6], SURFACES) == (" thea", [(0, 0), (1, 4), (4, 5)])


def test_reserved_ids_read_as_nothing_and_unknown_ones_as_a_sign():
    assert join([2, 4, 1, 3, 0], SURFACES) == ("the⁇", [(0, 0), (0, 3), (3, 4), (4, 4), (4, 4)])


def test_bytes_of_one_character_share_its_place():
    assert join([6, 7, 8, 9, 6], SURFACES, BYTES) == ("a▁a", [(0, 1), *[(1, 2)] * 3, (2, 3)])


def test_bytes_that_are_no_character_read_as_the_replacement_sign():
    assert join([7, 6, 8], SURFACES, BYTES) == ("\ufffda\ufffd", [(0, 1), (1, 2), (2, 3)])


def test_bytes_apart_are_not_put_together():
    assert join([7, 8, 6, 9], SURFACES, BYTES)[0] == "\ufffd\ufffda\ufffd"


def test_a_byte_never_breaks_a_line():
    assert join([6, 10, 6], SURFACES, BYTES)[0] == "a a"
