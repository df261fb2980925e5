"""A bucket in Amazon S3."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from galley.aws import unavailable_as
from galley.bucket import BucketUnavailable, ObjectInfo, ObjectMissing, ObjectTooLarge
from galley.instants import to_the_second

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef


class S3Bucket:
    """One bucket by its name. Opening it does no I/O."""

    def __init__(self, client: "S3Client", name: str) -> None:
        self._client = client
        self._name = name

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield every object whose key begins with the prefix, in the order of the keys' UTF-8 bytes.

        That is the order in which a general purpose bucket lists.
        https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
        """
        pages = iter(self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix))
        while (page := self._next(pages)) is not None:
            for found in page.get("Contents", []):
                yield ObjectInfo(
                    key=found["Key"],
                    size=found["Size"],
                    etag=found["ETag"].strip('"'),
                    modified=to_the_second(found["LastModified"]),
                )

    def get(self, key: str, *, max_bytes: int) -> bytes:
        """Return the whole object. Its size is known, and checked, before its body is read."""
        with unavailable_as(BucketUnavailable):
            try:
                found = self._client.get_object(Bucket=self._name, Key=key)
            except ClientError as error:
                if error.response["Error"]["Code"] == "NoSuchKey":
                    raise ObjectMissing(f"s3://{self._name}/{key} does not exist") from error
                raise
            with found["Body"] as body:
                if found["ContentLength"] > max_bytes:
                    raise ObjectTooLarge(
                        f"s3://{self._name}/{key} has {found['ContentLength']} bytes; {max_bytes} are allowed"
                    )
                return body.read()

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        """Write the whole object, replacing what was there."""
        with unavailable_as(BucketUnavailable):
            self._client.put_object(Bucket=self._name, Key=key, Body=body, ContentType=content_type)

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens when there is none."""
        with unavailable_as(BucketUnavailable):
            self._client.delete_object(Bucket=self._name, Key=key)

    @staticmethod
    def _next(pages: "Iterator[ListObjectsV2OutputTypeDef]") -> "ListObjectsV2OutputTypeDef | None":
        with unavailable_as(BucketUnavailable):
            return next(pages, None)
