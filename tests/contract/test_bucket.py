"""Objects by key."""

from datetime import UTC, datetime, timedelta

import pytest

from galley.bucket import Bucket, ObjectMissing, ObjectTooLarge

TEXT = "text/plain; charset=utf-8"
KEYS = [
    "a",
    "a!",
    "a-b/c",
    "a/",
    "a/b",
    "a/b/c.eml",
    "a0",
    "inbox/2026-03-02/ümlaut ☕ & = + %2F?.eml",
    "inbox/2026-03-02/😀",
    "inbox/2026-03-02/\uffff",
    "z..",
]


def put(bucket: Bucket, *keys: str) -> None:
    for key in keys:
        bucket.put(key, key.encode(), content_type=TEXT)


def listed(bucket: Bucket, prefix: str = "") -> list[str]:
    return [found.key for found in bucket.list(prefix)]


@pytest.mark.parametrize("body", [b"", b"x", bytes(range(256)) * 300], ids=["empty", "one byte", "all bytes"])
def test_an_object_comes_back_as_it_was_put(bucket: Bucket, body: bytes) -> None:
    bucket.put("inbox/1.eml", body, content_type="message/rfc822")

    assert bucket.get("inbox/1.eml", max_bytes=len(body)) == body
    (found,) = bucket.list("inbox/")
    assert (found.key, found.size) == ("inbox/1.eml", len(body))


def test_putting_again_replaces_the_whole_and_changes_the_etag(bucket: Bucket) -> None:
    bucket.put("a", b"a longer text than the next", content_type=TEXT)
    (before,) = bucket.list("")

    bucket.put("a", b"short", content_type=TEXT)

    (after,) = bucket.list("")
    assert bucket.get("a", max_bytes=100) == b"short"
    assert after.etag != before.etag
    assert '"' not in after.etag


def test_a_listing_is_in_the_order_of_the_keys_bytes_and_has_every_key(bucket: Bucket) -> None:
    put(bucket, *reversed(KEYS))

    assert listed(bucket) == sorted(KEYS, key=str.encode)
    for key in KEYS:
        assert bucket.get(key, max_bytes=100) == key.encode()


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("a/b", ["a/b", "a/b/c.eml"]),
        ("a/", ["a/", "a/b", "a/b/c.eml"]),
        ("a-", ["a-b/c"]),
        ("inbox/2026-03-02/ü", ["inbox/2026-03-02/ümlaut ☕ & = + %2F?.eml"]),
        ("b", []),
        ("a/b/c.eml", ["a/b/c.eml"]),
        ("a/b/c.eml.", []),
    ],
)
def test_a_prefix_is_the_beginning_of_a_key_and_no_folder(bucket: Bucket, prefix: str, expected: list[str]) -> None:
    put(bucket, *KEYS)

    assert listed(bucket, prefix) == expected


def test_an_objects_time_is_in_utc_and_to_the_second(bucket: Bucket) -> None:
    put(bucket, "a")

    (found,) = bucket.list("")

    assert found.modified.microsecond == 0
    assert found.modified.utcoffset() == timedelta()
    assert abs(datetime.now(UTC) - found.modified) < timedelta(minutes=1)


@pytest.mark.parametrize("key", ["b", "a/b", "A"])
def test_an_object_that_is_not_there_is_missing_and_named(bucket: Bucket, key: str) -> None:
    put(bucket, "a")

    with pytest.raises(ObjectMissing, match=key):
        bucket.get(key, max_bytes=100)


def test_an_object_that_is_larger_than_allowed_is_not_read_and_named(bucket: Bucket) -> None:
    bucket.put("large", b"12345", content_type=TEXT)

    with pytest.raises(ObjectTooLarge, match="large"):
        bucket.get("large", max_bytes=4)

    assert bucket.get("large", max_bytes=5) == b"12345"


def test_a_deleted_object_is_gone_and_deleting_it_again_is_nothing(bucket: Bucket) -> None:
    put(bucket, "a", "a/b")

    bucket.delete("a")
    bucket.delete("a")
    bucket.delete("never/there")

    assert listed(bucket) == ["a/b"]
    with pytest.raises(ObjectMissing):
        bucket.get("a", max_bytes=100)
