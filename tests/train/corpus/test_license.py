import pytest

from planish.train.corpus.sources import parse_licenses

TEXT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: little

Files: *
Copyright: 2001 Nobody
License: GPL-2+

Files: lib/*.c
 other/[x]?.c
Copyright: 2001 Nobody
  2002 Somebody
License: Expat or  zlib
 Permission is hereby granted

License: GPL-2+
 On Debian systems ...
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.c", "GPL-2+"),
        ("lib/a.c", "Expat or zlib"),
        ("lib/deep/a.c", "Expat or zlib"),  # DEP-5: the star takes slashes
        ("lib/a.h", "GPL-2+"),
        ("other/[x]1.c", "Expat or zlib"),
        ("other/x1.c", "GPL-2+"),
    ],
)
def test_the_last_rule_that_fits_counts(path: str, expected: str) -> None:
    assert parse_licenses(TEXT).of(path) == expected


@pytest.mark.parametrize("text", ["", "This package was debianized by ...\nLicense:\n\nMIT\n"])
def test_free_text_tells_nothing(text: str) -> None:
    assert parse_licenses(text).of("a.c") == "unknown"
