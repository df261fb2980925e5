"""The bucket as a folder: an object is a plain file, and a plain file that somebody puts there is an object.

A key's segments are the names of its folders and of its file, as long as they can be. A segment that cannot be a name,
or would mean something else as one, is percent-encoded behind a mark that begins with ``%00``:

- an empty segment, one that begins with a dot, with NUL in it, or that begins with ``%00`` itself. (Names that begin
  with a dot belong to desktops, editors and rsync; such files are no objects.)
- a segment of more than 255 bytes, in pieces;
- a file's name where a folder has it already: in S3, ``a`` and ``a/b`` are two objects.

A file whose name is not UTF-8 has a key in which the name is percent-encoded. Links are never followed: nothing
outside of the folder is read or written. Where the file system does not tell upper from lower case, keys that differ
in nothing else are one.

What somebody puts there and cannot be an object keeps no other from being one: a listing leaves it out and says so in
the log. That is what has no key that leads back to it, and what this user may not read.
"""

import errno
import hashlib
import logging
import os
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote, unquote_to_bytes

from galley.bucket import ObjectInfo, ObjectMissing, ObjectTooLarge, ObjectUnreadable
from galley.instants import in_utc, utc_now
from galley.texts import clip

LONGEST_KEY_BYTES = 1024
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html"""

_LONGEST_NAME_BYTES = 255
_MARK = "%00"
_FILE = f"{_MARK}file-"
_FOLDER = f"{_MARK}folder-"
_PIECE = f"{_MARK}piece-"
_TEMPORARY = f"{_MARK}temporary"
_PIECE_CHARACTERS = 200
_LONGEST_SHOWN = 500

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
_IS_A_FOLDER = frozenset({errno.EISDIR, errno.EPERM})

_NO_PLAIN_FILE = "it is a link or no plain file; copy the file itself there"
_NO_KEY = f"its key would be longer than {LONGEST_KEY_BYTES} bytes, or no text; give it a shorter, plain name"
_NOT_ITS_KEY = "its key stands for another file; give it a plain name that no other file has"
_PATH_TOO_LONG = "its path is too long for the file system; give it a shorter one"
_NOT_READABLE = "this user may not read it; make it readable"

_logger = logging.getLogger(__name__)

_Names = tuple[str, ...]
"""Where something is, from the bucket's folder on."""


class InvalidKey(ValueError):
    """A text that is no key in S3 either. Its text is one line."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder of a listing: ``key`` is how its objects' keys begin; ``pieces`` begin a segment that is in pieces."""

    names: _Names = ()
    key: str = ""
    pieces: str = ""

    def below(self, name: str) -> "_Folder":
        if name.startswith(_PIECE):
            return _Folder((*self.names, name), self.key, self.pieces + name[len(_PIECE) :])
        return _Folder((*self.names, name), f"{self.key}{_segment(name, _FOLDER, self.pieces)}/")

    def key_of(self, name: str) -> str:
        return self.key + _segment(name, _FILE, self.pieces)


@dataclass(frozen=True, slots=True)
class _Found:
    """A file of a listing. The lower the ``rank`` of its place, the sooner ``get`` looks there."""

    rank: int
    names: _Names
    info: ObjectInfo


class FolderBucket:
    """One folder as a bucket. Opening it does no I/O; the folder is made with its first object."""

    def __init__(self, root: Path, *, now: Callable[[], datetime] = utc_now) -> None:
        self._root = root
        self._now = now
        self._told: set[_Names] = set()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield every object whose key begins with the prefix, in the order of the keys' UTF-8 bytes.

        What cannot be an object is left out, and told once in the log.

        Raises:
            OSError: when a folder on the way cannot be read. One that this user may not read is left out, but not if
                it holds all that has the prefix: nothing seen there does not mean that nothing is there.
        """
        found: dict[str, _Found] = {}
        for one in self._files(prefix):
            other = found.setdefault(one.info.key, one)
            if other is not one:
                found[one.info.key], shadowed = (one, other) if one.rank < other.rank else (other, one)
                self._tell_once(shadowed.names, _NOT_ITS_KEY)
        for key in sorted(found):  # code points are in the order of their UTF-8 bytes
            yield found[key].info

    def get(self, key: str, *, max_bytes: int) -> bytes:
        """Return the whole object.

        Raises:
            ObjectMissing: there is none.
            ObjectUnreadable: this user may not read it.
            ObjectTooLarge: it has more than ``max_bytes`` bytes.
        """
        for names in _places(key):
            try:
                return self._read(names, key, max_bytes)
            except FileNotFoundError:
                continue
            except PermissionError as error:
                raise ObjectUnreadable(f"{_shown(self._at(names))}: {_NOT_READABLE}") from error
        raise ObjectMissing(f"{self._root}: holds no object {key!r}")

    def put(self, key: str, body: bytes, *, content_type: str) -> None:
        """Write the whole object, replacing what was there. A folder keeps no content type.

        Raises:
            InvalidKey: the key is empty, too long, or cannot be written as UTF-8.
            OSError: it cannot be written, or a link is in the way.
        """
        plain, escaped, *_ = _places(key)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if len(os.fsencode(self._at(escaped))) >= os.pathconf(self._root, "PC_PATH_MAX"):
            raise InvalidKey(f"{key[:40]!r} is no key on this machine: its path would be too long for the file system")
        with self._written(body) as (temporary_folder, temporary):
            if plain != escaped and self._move_in(temporary_folder, temporary, plain):
                self._remove(escaped)
            elif not self._move_in(temporary_folder, temporary, escaped):
                raise IsADirectoryError(errno.EISDIR, "is a folder; remove it", str(self._at(escaped)))

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens when there is none."""
        for names in _places(key):
            self._remove(names)

    def remove_leftovers(self) -> int:
        """Remove what a killed writer has left half written, and return how many files there were.

        Only for the start of a system that holds ``StateDirectory.lock_for_running``: no writer may live.
        """
        folder = self._root / _TEMPORARY
        leftovers = list(folder.iterdir()) if folder.is_dir() else []
        for path in leftovers:
            path.unlink(missing_ok=True)
        return len(leftovers)

    def _files(self, prefix: str) -> Iterator[_Found]:
        """Yield the objects, in no order; two files may have one key."""
        folders = [_Folder()]
        while folders:
            folder = folders.pop()
            try:
                entries = _entries(self._at(folder.names))
            except OSError as error:
                holds_all = prefix.startswith(folder.key) and not folder.pieces
                if holds_all or not self._is_left_out(folder.names, error):
                    raise
                continue
            for entry in entries:
                seen = self._look_at(folder, entry, prefix)
                if isinstance(seen, _Folder):
                    folders.append(seen)
                elif seen is not None:
                    yield seen

    def _look_at(self, folder: _Folder, entry: "os.DirEntry[str]", prefix: str) -> _Folder | _Found | None:
        """Return what an entry of a folder is, if it is an object with the prefix or may hold one."""
        names = (*folder.names, entry.name)
        try:
            if entry.is_dir(follow_symlinks=False):
                return self._below(folder, names, prefix)
            if entry.is_file(follow_symlinks=False):
                return self._object(folder.key_of(entry.name), names, entry, prefix)
        except FileNotFoundError:
            return None
        except OSError as error:
            if self._is_left_out(names, error):
                return None
            raise
        self._tell_once(names, _NO_PLAIN_FILE)
        return None

    def _below(self, folder: _Folder, names: _Names, prefix: str) -> _Folder | None:
        below = folder.below(names[-1])
        if not (below.key.startswith(prefix) or prefix.startswith(below.key)):
            return None
        if not _may_begin_a_key(below.key):
            self._tell_once(names, _NO_KEY)
            return None
        return below

    def _object(self, key: str, names: _Names, entry: "os.DirEntry[str]", prefix: str) -> _Found | None:
        if not key.startswith(prefix):
            return None
        try:
            places = _places(key)
        except InvalidKey:
            self._tell_once(names, _NO_KEY)
            return None
        if names not in places:
            self._tell_once(names, _NOT_ITS_KEY)
            return None
        return _Found(places.index(names), names, _info(key, entry.stat(follow_symlinks=False)))

    def _is_left_out(self, names: _Names, error: OSError) -> bool:
        """Tell whether an error is about this one path alone, and for good; if so, say that it is left out."""
        if error.errno == errno.ENAMETOOLONG:
            self._tell_once(names, _PATH_TOO_LONG)
            return True
        return False

    def _tell_once(self, names: _Names, why: str) -> None:
        if names not in self._told:
            self._told.add(names)
            _logger.warning("%s: is left out: %s", _shown(self._at(names)), why)

    def _read(self, names: _Names, key: str, max_bytes: int) -> bytes:
        """Return a file's bytes.

        Raises:
            FileNotFoundError: there is no plain file, or there are links on the way.
            ObjectTooLarge: it has more than ``max_bytes`` bytes.
        """
        with self._folder(names[:-1]) as folder:
            try:
                file = os.open(names[-1], _OPEN_FILE, dir_fd=folder)
            except OSError as error:
                raise _missing(error) from error
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            os.close(file)
            raise FileNotFoundError(errno.ENOENT, "is no plain file", str(self._at(names)))
        with os.fdopen(file, "rb") as opened:
            body = opened.read(max_bytes + 1) if status.st_size <= max_bytes else b""
        if max(status.st_size, len(body)) > max_bytes:
            raise ObjectTooLarge(f"{self._at(names)} has more than {max_bytes} bytes")
        return body

    @contextmanager
    def _written(self, body: bytes) -> Iterator[tuple[int, str]]:
        """Write a temporary file, safe on the disk; give its folder and its name. What is not moved away is removed."""
        name = str(uuid.uuid4())
        moment = int(in_utc(self._now()).timestamp() * 1_000_000) * 1_000
        with self._folder((_TEMPORARY,), make=True) as folder:
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                with os.fdopen(file, "wb") as opened:
                    opened.write(body)
                    opened.flush()
                    os.utime(file, ns=(moment, moment))
                    os.fsync(file)
                yield folder, name
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)

    def _move_in(self, temporary_folder: int, temporary: str, names: _Names) -> bool:
        """Move a written file to its place, making folders; tell whether that worked: a folder may be there."""
        with self._folder(names[:-1], make=True) as folder:
            try:
                os.rename(temporary, names[-1], src_dir_fd=temporary_folder, dst_dir_fd=folder)
            except IsADirectoryError:
                return False
            os.fsync(folder)
        return True

    def _remove(self, names: _Names) -> None:
        with suppress(FileNotFoundError), self._folder(names[:-1]) as folder:
            try:
                os.unlink(names[-1], dir_fd=folder)
            except OSError as error:
                if error.errno not in _IS_A_FOLDER:
                    raise _missing(error) from error
            else:
                os.fsync(folder)

    @contextmanager
    def _folder(self, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Open a folder of the bucket, step by step and through no link.

        Raises:
            FileNotFoundError: it is not there, and was not to be made.
        """
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in names:
                below = _make_folder(folder, name) if make else _open_folder(folder, name)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)

    def _at(self, names: _Names) -> Path:
        return self._root.joinpath(*names)


def _places(key: str) -> list[_Names]:
    """Return where an object may be, the likeliest place first: under its plain name, and under its escaped one.

    Raises:
        InvalidKey: see there.
    """
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidKey(f"{key[:40]!r} is no key: it cannot be written as UTF-8") from error
    if not 1 <= size <= LONGEST_KEY_BYTES:
        raise InvalidKey(f"{key[:40]!r} is no key: it has {size} bytes, and a key has 1 to {LONGEST_KEY_BYTES}")
    *above, last = key.split("/")
    folders = tuple(name for segment in above for name in _names(segment, _FOLDER))
    escaped = (*folders, *_escaped(last, _FILE))
    plain = (*folders, last) if _is_plain(last) else escaped
    raw = tuple(_raw(segment) for segment in (*above, last))
    is_other = raw != (*above, last) and all(map(_is_plain, raw))
    return [plain, escaped, raw] if is_other else [plain, escaped]


def _is_plain(segment: str) -> bool:
    return (
        bool(segment)
        and not segment.startswith((".", _MARK))
        and "\0" not in segment
        and len(os.fsencode(segment)) <= _LONGEST_NAME_BYTES
    )


def _may_begin_a_key(text: str) -> bool:
    try:
        return len(text.encode()) <= LONGEST_KEY_BYTES
    except UnicodeEncodeError:
        return False


def _names(segment: str, mark: str) -> _Names:
    return (segment,) if _is_plain(segment) else _escaped(segment, mark)


def _escaped(segment: str, mark: str) -> _Names:
    encoded = quote(segment, safe=" ")
    pieces = [encoded[start : start + _PIECE_CHARACTERS] for start in range(0, len(encoded), _PIECE_CHARACTERS)] or [""]
    return (*(f"{_PIECE}{piece}" for piece in pieces[:-1]), f"{mark}{pieces[-1]}")


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith((".", _TEMPORARY))]
    except FileNotFoundError:
        return []


def _segment(name: str, mark: str, pieces: str) -> str:
    """Return the segment of a key that a name (after the pieces above it) stands for."""
    if name.startswith(mark):
        return unquote(pieces + name[len(mark) :])
    try:
        name.encode()
    except UnicodeEncodeError:
        return quote(os.fsencode(name), safe=" ")
    return name


def _raw(segment: str) -> str:
    """Return the name, not in UTF-8, that a segment stands for in a listing; the segment itself if it is none."""
    name = unquote_to_bytes(segment)
    try:
        name.decode()
    except UnicodeDecodeError:
        return segment if b"/" in name or b"\0" in name else os.fsdecode(name)
    return segment


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    """Describe a file. The tag names this very file and its last change, so it changes at least with the content."""
    identity = f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return ObjectInfo(
        key=key,
        size=status.st_size,
        etag=hashlib.sha256(identity.encode()).hexdigest()[:32],
        modified=datetime.fromtimestamp(status.st_mtime_ns // 1_000_000_000, UTC),
    )


def _open_folder(above: int, name: str) -> int:
    try:
        return os.open(name, _OPEN_FOLDER, dir_fd=above)
    except OSError as error:
        raise _missing(error) from error


def _make_folder(above: int, name: str) -> int:
    """Open a folder, making it where it is not. A file of its name makes room: its own object moves to an escaped name.

    Raises:
        OSError: a link has its name.
    """
    while True:
        with suppress(FileNotFoundError):
            return _open_folder(above, name)
        try:
            os.mkdir(name, 0o700, dir_fd=above)
            os.fsync(above)
        except FileExistsError:
            _make_room(above, name)


def _make_room(above: int, name: str) -> None:
    try:
        status = os.lstat(name, dir_fd=above)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ELOOP, "is a link or no plain file; the bucket goes through none", name)
    *pieces, last = _escaped(name, _FILE)
    folder = os.dup(above)
    try:
        for piece in pieces:
            below = _make_folder(folder, piece)
            os.close(folder)
            folder = below
        with suppress(FileNotFoundError):
            os.rename(name, last, src_dir_fd=above, dst_dir_fd=folder)
            os.fsync(folder)
    finally:
        os.close(folder)


def _shown(path: Path) -> str:
    """Return a path on one line of text, whatever its bytes are."""
    text = os.fsencode(path).decode(errors="backslashreplace")
    return clip("".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text), _LONGEST_SHOWN)


def _missing(error: OSError) -> OSError:
    """Return the error as one that says there is nothing, where that is what it means."""
    return FileNotFoundError(errno.ENOENT, error.strerror, error.filename) if error.errno in _NOT_THERE else error
