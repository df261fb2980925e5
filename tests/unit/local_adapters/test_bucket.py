"""The folder that is the bucket: keys that are no file names, files that nobody put, and links."""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from galley.bucket import ObjectMissing, ObjectTooLarge, ObjectUnreadable
from galley_cli.local.bucket import FolderBucket, InvalidKey
from unit.local_adapters.conftest import Clock

HOSTILE = [
    "../outside",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../outside",
    "..",
    ".",
    "./here",
    "a//b",
    "a/",
    "a//",
    "/",
    "//",
    ".hidden",
    ".git/config",
    "a\\..\\b",
    "C:\\windows",
    "nul\0in/the\0middle",
    "line\nbreak",
    "%00file-x",
    "%00temporary/x",
    "%2e%2e/outside",
    "100%",
    "caf%C3%A9",
    "published/daily-digest/2026-03-29T05:00:00Z.md",
    "ünï/çødé/☕.eml",
    "s" * 255,
    "s" * 256,
    "é" * 200,
    "é" * 200 + "/below",
    "x" * 300 + "/" + "y" * 300,
    "a/" * 60 + "z",
    "~",
    "-rf *",
    " ",
    "trailing. ",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "bucket"


@pytest.fixture
def bucket(folder: Path, clock: Clock) -> FolderBucket:
    return FolderBucket(folder, now=clock)


def put(bucket: FolderBucket, key: str, body: bytes = b"") -> None:
    bucket.put(key, body or key.encode(), content_type="text/plain")


def get(bucket: FolderBucket, key: str) -> bytes:
    return bucket.get(key, max_bytes=100_000)


def fits(folder: Path, key: str) -> bool:
    """Tell whether this system's paths are long enough for the key: some allow no more than 1024 bytes."""
    return len(str(folder)) + 3 * len(key.encode()) + 100 < os.pathconf(folder.parents[1], "PC_PATH_MAX")


def keys(bucket: FolderBucket, prefix: str = "") -> list[str]:
    return [one.key for one in bucket.list(prefix)]


@pytest.mark.parametrize("key", HOSTILE)
def test_any_key_of_s3_is_kept_inside_of_the_folder_and_comes_back_as_it_was(
    bucket: FolderBucket, folder: Path, key: str, tmp_path: Path
) -> None:
    if not fits(folder, key):
        pytest.skip("this system's paths are too short for the key")
    put(bucket, key)
    assert get(bucket, key) == key.encode()
    assert keys(bucket) == [key]
    assert keys(bucket, key) == [key]
    assert keys(bucket, key[: len(key) // 2]) == [key]
    assert [path for path in tmp_path.rglob("*") if path.is_file() and folder not in path.parents] == []
    bucket.delete(key)
    assert keys(bucket) == []
    with pytest.raises(ObjectMissing):
        get(bucket, key)


def test_all_of_these_keys_are_different_objects_in_the_order_of_their_bytes(
    bucket: FolderBucket, folder: Path
) -> None:
    fitting = [key for key in HOSTILE if fits(folder, key)]
    for key in fitting:
        put(bucket, key)
    assert keys(bucket) == sorted(fitting, key=str.encode)
    assert all(get(bucket, key) == key.encode() for key in fitting)


@pytest.mark.parametrize(
    ("key", "says"), [("", "has 0 bytes"), ("é" * 513, "has 1026 bytes"), ("bad \udce9", "cannot be written as UTF-8")]
)
def test_what_is_no_key_in_s3_is_none_here(bucket: FolderBucket, key: str, says: str) -> None:
    for use in (lambda: put(bucket, key, b"x"), lambda: get(bucket, key), lambda: bucket.delete(key)):
        with pytest.raises(InvalidKey, match=says):
            use()


def test_a_key_whose_path_would_be_too_long_is_refused_before_anything_is_made(
    bucket: FolderBucket, folder: Path
) -> None:
    with pytest.raises(InvalidKey, match="its path would be too long"):
        put(bucket, "\0/" * 500)
    assert list(folder.iterdir()) == []


def test_the_order_is_that_of_the_bytes_not_that_of_the_folders(bucket: FolderBucket) -> None:
    expected = ["a", "a-b", "a.txt", "a/b", "a0", "é", "\uffff", "\U0001f600"]
    for key in reversed(expected):
        put(bucket, key)
    assert keys(bucket) == expected
    assert keys(bucket, "a") == expected[:5]
    assert keys(bucket, "a/") == ["a/b"]


@pytest.mark.parametrize("order", [("a", "a/b", "a/b/c"), ("a/b/c", "a/b", "a"), ("a/b", "a", "a/b/c")])
def test_an_object_may_have_the_name_of_a_folder(bucket: FolderBucket, order: tuple[str, ...]) -> None:
    for key in order:
        put(bucket, key, b"first")
    for key in order:
        put(bucket, key)
    assert keys(bucket) == ["a", "a/b", "a/b/c"]
    assert [get(bucket, key) for key in order] == [key.encode() for key in order]
    bucket.delete("a")
    assert keys(bucket) == ["a/b", "a/b/c"]


def test_an_object_whose_folder_is_gone_is_written_and_listed_once(bucket: FolderBucket, folder: Path) -> None:
    put(bucket, "a/b")
    put(bucket, "a", b"old")
    bucket.delete("a/b")
    (folder / "a").rmdir()
    put(bucket, "a", b"new")
    assert keys(bucket) == ["a"]
    assert get(bucket, "a") == b"new"
    (folder / "a").unlink()
    assert keys(bucket) == []


def test_files_that_somebody_copies_there_are_objects(bucket: FolderBucket, folder: Path) -> None:
    mails = folder / "mail" / "daily digest"
    mails.mkdir(parents=True)
    names = ["1.eml", "Re: 100% [x].eml", "back\\slash", "line\nbreak", "ümlaut.eml"]
    for name in names:
        (mails / name).write_text(name)
    assert keys(bucket, "mail/daily") == sorted((f"mail/daily digest/{name}" for name in names), key=str.encode)
    assert all(get(bucket, f"mail/daily digest/{name}").decode() == name for name in names)


def test_a_file_whose_name_is_not_utf_8_has_a_key_too(bucket: FolderBucket, folder: Path) -> None:
    folder.mkdir(parents=True)
    try:
        (folder / os.fsdecode(b"caf\xe9")).mkdir()
        (folder / os.fsdecode(b"caf\xe9/gr\xfc\xdfe.eml")).write_text("hello")
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    assert keys(bucket, "caf%E9/") == ["caf%E9/gr%FC%DFe.eml"]
    assert get(bucket, "caf%E9/gr%FC%DFe.eml") == b"hello"
    bucket.delete("caf%E9/gr%FC%DFe.eml")
    assert keys(bucket) == []


def test_files_of_desktops_editors_and_killed_writers_are_no_objects(bucket: FolderBucket, folder: Path) -> None:
    put(bucket, "a/kept")
    for name in (".DS_Store", "a/.kept.swp", "a/.rsync.x8Hk2", "%00temporary/half"):
        (folder / name).write_text("half")
    (folder / ".Trash").mkdir()
    (folder / ".Trash" / "mail.eml").write_text("gone")
    assert keys(bucket) == ["a/kept"]
    assert bucket.remove_leftovers() == 1
    assert bucket.remove_leftovers() == 0


def test_links_are_followed_nowhere_and_that_is_said_once(
    bucket: FolderBucket, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    put(bucket, "real/secret")
    (folder / "linked").symlink_to(outside, target_is_directory=True)
    (folder / "real" / "link").symlink_to(outside / "secret")
    for _ in range(2):
        assert keys(bucket) == ["real/secret"]
    assert sorted(record.getMessage().partition(":")[0] for record in caplog.records) == [
        str(folder / "linked"),
        str(folder / "real" / "link"),
    ]
    for key in ("linked/secret", "real/link"):
        with pytest.raises(ObjectMissing):
            get(bucket, key)
    with pytest.raises(OSError, match="the bucket goes through none"):
        put(bucket, "linked/secret")
    bucket.delete("linked/secret")
    put(bucket, "real/link", b"mine")
    assert get(bucket, "real/link") == b"mine"
    assert (outside / "secret").read_text() == "secret"


def test_what_is_no_plain_file_is_no_object_and_does_not_block(bucket: FolderBucket, folder: Path) -> None:
    put(bucket, "a/b")
    os.mkfifo(folder / "pipe")
    assert keys(bucket) == ["a/b"]
    for key in ("pipe", "a"):
        with pytest.raises(ObjectMissing):
            get(bucket, key)


def test_the_tag_changes_with_the_content_even_in_the_same_instant(bucket: FolderBucket) -> None:
    tags = []
    for body in (b"one", b"two", b"two", b"one"):
        put(bucket, "a", body)
        (found,) = bucket.list("a")
        tags.append(found.etag)
    assert tags[0] != tags[1]
    assert tags[2] != tags[3]
    assert [one.etag for one in bucket.list("a")] == tags[-1:]


def test_an_object_tells_its_size_and_when_it_was_written(bucket: FolderBucket, clock: Clock) -> None:
    clock.forward(milliseconds=999)
    put(bucket, "a", b"12345")
    (found,) = bucket.list("")
    assert (found.key, found.size, found.modified) == ("a", 5, datetime(2026, 3, 2, 6, 1, tzinfo=UTC))


def test_an_object_that_is_too_large_is_not_returned_in_part(bucket: FolderBucket) -> None:
    put(bucket, "a", b"12345")
    assert bucket.get("a", max_bytes=5) == b"12345"
    with pytest.raises(ObjectTooLarge, match="more than 4 bytes"):
        bucket.get("a", max_bytes=4)


def test_a_bucket_that_was_never_written_to_is_empty(bucket: FolderBucket, folder: Path) -> None:
    assert keys(bucket) == []
    bucket.delete("a")
    with pytest.raises(ObjectMissing, match="holds no object 'a'"):
        get(bucket, "a")
    assert not folder.exists()


def test_a_write_that_fails_leaves_the_old_object_and_nothing_else(
    bucket: FolderBucket, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "a", b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            put(bucket, "a", b"new")
    assert get(bucket, "a") == b"old"
    assert bucket.remove_leftovers() == 0


def test_a_folder_that_cannot_be_read_just_now_fails_the_listing(
    bucket: FolderBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "mail/1.eml")

    def broken(path: Path) -> object:
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr(os, "scandir", broken)
    with pytest.raises(OSError, match="Input/output error"):
        keys(bucket)


def write(folder: Path, *names: bytes) -> None:
    """Write a file, however long its path is and whatever its names are."""
    folder.mkdir(parents=True, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    try:
        for name in names[:-1]:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
            above, at = at, os.open(name, os.O_RDONLY, dir_fd=at)
            os.close(above)
        os.close(os.open(names[-1], os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=at))
    except OSError:
        pytest.skip("this file system has no such names")
    finally:
        os.close(at)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param([b"d" * 250] * 5 + [b"x.eml"], id="a key that is too long"),
        pytest.param([b"d" * 250] * 20 + [b"x.eml"], id="a path that is too long"),
        pytest.param([b"d" * 250] * 4 + [b"x" * 30], id="a key that is too long with its last name"),
        pytest.param([b"\xe9" * 120] * 3 + [b"x.eml"], id="no UTF-8, and a key that is too long when escaped"),
        pytest.param([b"\xe9" * 255, b"\xe9" * 255], id="no UTF-8, and too long in its last name"),
        pytest.param([b"%00file-a%2Fb"], id="escaped without need"),
        pytest.param([b"%00folder-a%2Fb", b"x"], id="a folder escaped without need"),
        pytest.param([b"%00piece-abc", b"%00file-def"], id="in pieces without need"),
        pytest.param([b"%00file-\xe9"], id="escaped and no UTF-8"),
        pytest.param([b"%00folder-\xe9", b"x"], id="a folder that is escaped and no UTF-8"),
        pytest.param([b"%00file-%FF%FE"], id="escaped bytes that are no UTF-8"),
        pytest.param([b"%00unknown"], id="an unknown mark"),
        pytest.param([b"caf\xe9", b"100%E9"], id="one name is no UTF-8 and another looks escaped"),
    ],
)
def test_what_has_no_key_that_leads_back_to_it_is_left_out_told_once_and_blocks_nothing(
    bucket: FolderBucket, folder: Path, odd: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    put(bucket, "mail/1.eml")
    write(folder, b"mail", *odd)
    for _ in range(2):
        assert [(one.key, get(bucket, one.key)) for one in bucket.list("mail/")] == [("mail/1.eml", b"mail/1.eml")]
    (told,) = caplog.messages
    assert told.startswith(f"{folder}/mail/")
    assert "is left out" in told
    assert told.isprintable()


def test_of_two_files_with_one_key_the_one_that_is_read_is_listed(
    bucket: FolderBucket, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (b"caf%E9", b"caf\xe9"):
        write(folder, name)
    (folder / "caf%E9").write_text("this one")
    for _ in range(2):
        assert [(one.key, one.size) for one in bucket.list("")] == [("caf%E9", len("this one"))]
    assert get(bucket, "caf%E9") == b"this one"
    assert len(caplog.messages) == 1
    assert "its key stands for another file" in caplog.messages[0]


@pytest.mark.parametrize("key", ["../caf%E9", "x/../../caf%E9", "nul\0/caf%E9", "l" * 300 + "/caf%E9", "//caf%E9"])
def test_a_key_that_may_stand_for_a_name_without_utf_8_leads_nowhere_else(
    bucket: FolderBucket, folder: Path, key: str
) -> None:
    put(bucket, "x/y")
    write(folder.parent, b"caf\xe9")
    with pytest.raises(ObjectMissing):
        get(bucket, key)
    bucket.delete(key)
    assert (folder.parent / os.fsdecode(b"caf\xe9")).exists()
    put(bucket, key, b"mine")
    assert get(bucket, key) == b"mine"


@pytest.fixture
def bound_by_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderBucket]:
    """Give a bucket and work as a user whom modes bind, also where the tests run as root."""
    monkeypatch.chdir(tmp_path)
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
        os.setresuid(65534, 65534, 0)
    try:
        yield FolderBucket(Path("bucket"))
    finally:
        if hasattr(os, "getresuid") and os.getresuid()[2] == 0:
            os.setresuid(0, 0, 0)
        for path in Path().rglob("*"):
            path.chmod(0o700)


def test_an_object_that_this_user_may_not_read_is_listed_all_the_same(bound_by_modes: FolderBucket) -> None:
    """Were it left out, it would pass for deleted: a sync would take it out of its index."""
    put(bound_by_modes, "mail/1.eml")
    put(bound_by_modes, "mail/closed.eml")
    Path("bucket/mail/closed.eml").chmod(0)
    assert keys(bound_by_modes, "mail/") == ["mail/1.eml", "mail/closed.eml"]


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111])
def test_a_folder_that_this_user_may_not_read_makes_the_listing_fail(bound_by_modes: FolderBucket, mode: int) -> None:
    put(bound_by_modes, "mail/1.eml")
    put(bound_by_modes, "mail/closed/2.eml")
    Path("bucket/mail/closed").chmod(mode)
    with pytest.raises(PermissionError):
        keys(bound_by_modes, "mail/")


def test_an_object_that_this_user_may_not_read_is_told_from_one_that_is_not_there(
    bound_by_modes: FolderBucket,
) -> None:
    put(bound_by_modes, "mail/closed.eml")
    put(bound_by_modes, "closed/1.eml")
    for closed in ("mail/closed.eml", "closed"):
        Path("bucket", closed).chmod(0)
    for key in ("mail/closed.eml", "closed/1.eml"):
        with pytest.raises(ObjectUnreadable, match="this user may not read it"):
            get(bound_by_modes, key)


@pytest.mark.parametrize(
    ("closed", "prefix"), [("bucket", "mail/"), ("bucket/mail", "mail/"), ("bucket/mail", "mail/in")]
)
def test_a_folder_that_holds_all_that_is_asked_for_is_not_taken_for_empty(
    bound_by_modes: FolderBucket, closed: str, prefix: str
) -> None:
    put(bound_by_modes, "mail/in/1.eml")
    Path(closed).chmod(0)
    with pytest.raises(PermissionError):
        keys(bound_by_modes, prefix)
