"""What is S3's own: the pages of a listing, what is asked for, and errors that are nobody's outcome."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from galley.bucket import BucketUnavailable, ObjectMissing, ObjectTooLarge
from galley.bucket.s3 import S3Bucket
from support.aws import BUCKET, Requests, client, create_bucket, error, watched


@pytest.fixture
def requests() -> Iterator[Requests]:
    with mock_aws(), watched(client("s3")) as requests:
        create_bucket(client("s3"))
        requests.forget()
        yield requests


@pytest.fixture
def bucket(requests: Requests) -> S3Bucket:
    return S3Bucket(client("s3"), BUCKET)


def page(*keys: str, more: str | None = None) -> dict[str, object]:
    modified = datetime(2026, 3, 2, 6, 0, 0, 500_000, tzinfo=UTC)
    found = [{"Key": key, "Size": 1, "ETag": f'"{key}"', "LastModified": modified} for key in keys]
    return {"Contents": found, "IsTruncated": more is not None} | (
        {} if more is None else {"NextContinuationToken": more}
    )


def test_a_listing_follows_every_page(bucket: S3Bucket, requests: Requests) -> None:
    requests.answer_with(200, page("a", "b", more="the-next"))
    requests.answer_with(200, {"IsTruncated": True, "NextContinuationToken": "the-last"})
    requests.answer_with(200, page("c"))

    found = list(bucket.list("inbox/"))

    assert [one.key for one in found] == ["a", "b", "c"]
    assert found[0].modified == datetime(2026, 3, 2, 6, tzinfo=UTC)
    assert [asked.get("ContinuationToken") for asked in requests.parameters] == [None, "the-next", "the-last"]
    assert {asked["Prefix"] for asked in requests.parameters} == {"inbox/"}


def test_a_listing_that_fails_on_the_way_raises_and_is_not_taken_for_whole(
    bucket: S3Bucket, requests: Requests
) -> None:
    requests.answer_with(200, page("a", more="the-next"))
    requests.answer_with(400, error("AccessDenied", "not any more"))

    listing = bucket.list("")

    assert next(listing).key == "a"
    with pytest.raises(ClientError, match="not any more"):
        next(listing)


def test_an_object_is_had_with_one_request(bucket: S3Bucket, requests: Requests) -> None:
    bucket.put("a", b"text", content_type="text/plain")
    requests.forget()

    assert bucket.get("a", max_bytes=4) == b"text"
    with pytest.raises(ObjectTooLarge, match="s3://galley-bucket/a has 4 bytes; 3 are allowed"):
        bucket.get("a", max_bytes=3)
    assert requests.made == ["GetObject", "GetObject"]


def test_an_objects_type_is_kept(bucket: S3Bucket) -> None:
    bucket.put("a", b"text", content_type="text/markdown; charset=utf-8")

    assert client("s3").head_object(Bucket=BUCKET, Key="a")["ContentType"] == "text/markdown; charset=utf-8"


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchBucket"])
def test_only_a_missing_object_is_missing(bucket: S3Bucket, requests: Requests, code: str) -> None:
    requests.answer_with(400, error(code, "something else"))

    with pytest.raises(ClientError, match=code):
        bucket.get("a", max_bytes=1)


@pytest.mark.parametrize("operation", ["get", "list", "put", "delete"])
def test_a_bucket_that_gives_no_answer_may_give_one_later(bucket: S3Bucket, requests: Requests, operation: str) -> None:
    requests.answer_with(503, error("SlowDown", "please reduce your request rate"), times=5)
    operations: dict[str, Callable[[], object]] = {
        "get": lambda: bucket.get("a", max_bytes=1),
        "list": lambda: list(bucket.list("")),
        "put": lambda: bucket.put("a", b"", content_type="text/plain"),
        "delete": lambda: bucket.delete("a"),
    }

    with pytest.raises(BucketUnavailable, match=r"bucket_unavailable: .*SlowDown"):
        operations[operation]()


def test_a_missing_object_is_named_with_its_bucket(bucket: S3Bucket) -> None:
    with pytest.raises(ObjectMissing, match=r"s3://galley-bucket/inbox/1\.eml does not exist"):
        bucket.get("inbox/1.eml", max_bytes=1)
