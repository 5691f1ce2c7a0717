"""Encoded paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.path import PREFIX, EncodedPath, PathError, decode, encode, fingerprint

PATH = EncodedPath({"lanes": 3, "admission": "strict_fifo"}, 0, (1, 0, 12), "0123456789ab")


@given(st.lists(st.integers(0, 10**6)).map(tuple), st.dictionaries(st.text(), st.integers()))
def test_decode_inverts_encode(actions, scenario):
    path = EncodedPath(scenario, 0, actions, fingerprint(actions))
    assert decode(encode(path)) == path


@given(st.data())
def test_a_changed_or_cut_path_is_refused(data):
    word = encode(PATH)
    place = data.draw(st.integers(len(PREFIX), len(word) - 1))
    letter = data.draw(st.sampled_from("ABCDEFabcdef0123456789-_ !.=+/").filter(word[place].__ne__))
    changed = word[:place] + letter + word[place + 1 :]
    longer = word[:place] + letter + word[place:]
    for broken in (word[:place], changed, longer):
        with pytest.raises(PathError, match="path"):
            decode(broken)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("", "no encoded path"),
        ("hello", "no encoded path"),
        ("fv0-abc", "another format version"),
        (PREFIX, "cut or changed"),
        (PREFIX + "ä", "characters"),
    ],
)
def test_foreign_words_are_refused_with_the_reason(word, said):
    with pytest.raises(PathError, match=said):
        decode(word)
