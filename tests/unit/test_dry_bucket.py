"""A bucket that is read and never written to. What it has in common with every bucket is in tests/contract."""

import pytest

from galley.bucket import ObjectMissing
from galley_cli.dry_bucket import DryBucket
from support.memory_bucket import MemoryBucket

TEXT = "text/plain; charset=utf-8"


@pytest.fixture
def below() -> MemoryBucket:
    bucket = MemoryBucket()
    for key in ("a", "b/1", "b/2", "c"):
        bucket.put(key, key.encode(), content_type=TEXT)
    return bucket


def test_what_is_done_to_it_is_seen_in_it_and_not_below(below: MemoryBucket) -> None:
    dry = DryBucket(below)
    before = list(below.list(""))
    dry.put("b/2", b"new", content_type=TEXT)
    dry.put("b/3", b"3", content_type=TEXT)
    dry.delete("b/1")
    dry.delete("c")

    assert [one.key for one in dry.list("")] == ["a", "b/2", "b/3"]
    assert [one.key for one in dry.list("b/")] == ["b/2", "b/3"]
    assert dry.get("b/2", max_bytes=10) == b"new"
    assert dry.get("a", max_bytes=10) == b"a"
    with pytest.raises(ObjectMissing, match="b/1"):
        dry.get("b/1", max_bytes=10)
    assert list(below.list("")) == before
    assert below.get("b/2", max_bytes=10) == b"b/2"
    assert (dry.written, dry.removed) == (("b/2", "b/3"), ("b/1", "c"))


def test_what_is_undone_is_no_change(below: MemoryBucket) -> None:
    dry = DryBucket(below)
    dry.put("new", b"", content_type=TEXT)
    dry.delete("new")
    dry.delete("b")
    dry.delete("a")
    dry.put("a", b"a", content_type=TEXT)

    assert (dry.written, dry.removed) == (("a",), ())
    assert [one.key for one in dry.list("")] == ["a", "b/1", "b/2", "c"]


def test_an_object_that_is_as_it_was_keeps_its_etag_below(below: MemoryBucket) -> None:
    dry = DryBucket(below)
    dry.put("b/1", b"1", content_type=TEXT)
    etags = {one.key: one.etag for one in below.list("")}
    listed = {one.key: one.etag for one in dry.list("")}
    assert listed.pop("b/1") != etags.pop("b/1")
    assert listed == etags
