"""A list of addresses is read whole or not at all."""

import pytest

from sources.address_list import UnreadableList, read_addresses

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
IMAGES = 'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'


def sitemap(*locations: str) -> bytes:
    """Return a sitemap of these addresses."""
    urls = "".join(f"<url><loc>{one}</loc><lastmod>2026-01-01</lastmod></url>" for one in locations)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {NAMESPACE}>{urls}</urlset>'.encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"https://a.example/1\nhttp://a.example/2\n", ("https://a.example/1", "http://a.example/2")),
        (b"\xef\xbb\xbf\r\nhttps://a.example/1  \r\n\r\nhttps://a.example/1#part\r\n", ("https://a.example/1",)),
        (sitemap("https://a.example/?a=1&amp;b=2", " https://a.example/2\n"),
         ("https://a.example/?a=1&b=2", "https://a.example/2")),
        (b"<urlset><url><loc>https://a.example/</loc></url></urlset>", ("https://a.example/",)),
        (f"<urlset {NAMESPACE} {IMAGES}><url><loc>https://a.example/</loc><image:image><image:loc>https://i.example/"
         "</image:loc></image:image></url></urlset>".encode(), ("https://a.example/",)),
    ],
)  # fmt: skip
def test_both_forms_of_a_sitemap_are_read(body: bytes, expected: tuple[str, ...]) -> None:
    assert read_addresses(body) == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "has no addresses in it"),
        (b"\n \n", "has no addresses in it"),
        (sitemap(), "has no addresses in it"),
        (b"https://a.example/1\n/2\n", "line 2: '/2' is not an http or https address"),
        (b"https://a.example/a b\n", "line 1: 'https://a.example/a b' is not an http or https address"),
        (b"https://me:secret@a.example/\n", "is not an http or https address"),
        (b"file:///etc/passwd\n", "is not an http or https address"),
        (sitemap("https://a.example/", "javascript:alert(1)"), "'javascript:alert(1)' is not an http or https address"),
        (b"https://a.example/\n\xff", "is not text in UTF-8"),
        (sitemap("https://a.example/")[:-9], "is neither a sitemap nor a list of addresses"),
        (b"<html><p>Sorry<br></html>", "is no sitemap (its element is 'html')"),
        (b"<!DOCTYPE html><html></html>", "has a document type"),
        (f"<sitemapindex {NAMESPACE}/>".encode(), "is an index of sitemaps; name one of them"),
        (b'<?xml version="1.0" encoding="no-such"?><urlset/>', "is in an encoding that is not read; use UTF-8"),
        (b'<?xml version="1.0" encoding="shift_jis"?><urlset/>', "is in an encoding that is not read; use UTF-8"),
        (b'<?xml version="1.0" encoding="punycode"?><urlset/>', "is in an encoding that is not read; use UTF-8"),
        (b'<?xml version="1.0" encoding="hex"?><urlset/>', "is in an encoding that is not read; use UTF-8"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><urlset><url><loc>https://a/&b;</loc></url></urlset>', "has a document type"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_as_a_whole(body: bytes, said: str) -> None:
    with pytest.raises(UnreadableList) as failure:
        read_addresses(body)
    assert said in str(failure.value)
    assert "\n" not in str(failure.value)
