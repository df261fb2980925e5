"""A bucket in Amazon S3."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from galley.bucket import ObjectInfo, ObjectMissing, ObjectTooLarge
from galley.instants import in_utc

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


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
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix)
        for page in pages:
            for found in page.get("Contents", []):
                yield ObjectInfo(
                    key=found["Key"],
                    size=found["Size"],
                    etag=found["ETag"].strip('"'),
                    modified=in_utc(found["LastModified"]).replace(microsecond=0),
                )

    def get(self, key: str, *, max_bytes: int) -> bytes:
        """Return the whole object. Its size is known, and checked, before its body is read."""
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
        self._client.put_object(Bucket=self._name, Key=key, Body=body, ContentType=content_type)

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens when there is none."""
        self._client.delete_object(Bucket=self._name, Key=key)
