"""Samples, from a folder that every node sees or as bytes that travel with their shard."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import ray

from .errors import OctetRayError

# Files beside samples that are none, as in the command line.
NOT_SAMPLES = {".csv", ".txt", ".md", ".json", ".yaml", ".html"}
# The files of such a folder are one sample.
TEST_DATA = re.compile(r"^test_data_set_\d+$")


def _files(folder: Path) -> list[Path]:
    if not folder.exists():
        raise OctetRayError(f"can't read the samples {folder}: there is no such file or folder; check the path", 3)
    if folder.is_file():
        return [folder]
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    visible = (path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    return [path for path in visible if path.suffix.lower() not in NOT_SAMPLES]


def _sample_of(path: Path) -> str:
    """The name by which files belong to one sample."""
    return str(path.parent) if TEST_DATA.match(path.parent.name) else str(path)


@dataclass(frozen=True)
class FolderSamples:
    """A folder with the same path on every node, as on a shared file system."""

    path: Path

    def count(self) -> int:
        return len({_sample_of(path) for path in _files(self.path)})

    def shards(self, count: int) -> list["FolderShard"]:
        return [FolderShard(str(self.path.resolve()), number, count) for number in range(1, count + 1)]


@dataclass(frozen=True)
class FolderShard:
    """A shard of a shared folder: the program finds its samples itself."""

    path: str
    number: int
    count: int

    def arguments(self, _folder: Path) -> list[str]:
        return ["--samples", self.path, "--shard", f"{self.number}/{self.count}"]


@dataclass
class ShippedSamples:
    """Samples as bytes. Each is a list of files, `(name, content)`, and goes to one worker.

    Any source gives them: a folder of this machine (`from_folder`), rows of `ray.data`
    (`ray.data.read_binary_files(paths, include_paths=True).iter_rows()`), or an object store's client.
    """

    samples: Iterable[list[tuple[str, bytes]]]
    _kept: list = field(default_factory=list, init=False)
    _identity: str = field(default="", init=False)

    @classmethod
    def from_folder(cls, folder: Path) -> "ShippedSamples":
        groups: dict[str, list[Path]] = {}
        for path in _files(folder):
            groups.setdefault(_sample_of(path), []).append(path)
        base = folder if folder.is_dir() else folder.parent
        return cls(
            [(str(path.relative_to(base)), path.read_bytes()) for path in paths] for paths in groups.values()
        )

    def _keep(self) -> None:
        """Puts every sample into the object store, once for all passes."""
        if self._kept:
            return
        checksum = hashlib.sha256()
        for files in self.samples:
            for name, content in files:
                checksum.update(f"{name}\0{len(content)}\0".encode())
                checksum.update(content)
            self._kept.append(ray.put(files))
        self._identity = f"{len(self._kept)} shipped samples {checksum.hexdigest()[:16]}"

    def count(self) -> int:
        self._keep()
        return len(self._kept)

    def shards(self, count: int) -> list["ShippedShard"]:
        self._keep()
        numbers = range(1, count + 1)
        return [ShippedShard(self._identity, n, count, tuple(self._kept[n - 1 :: count])) for n in numbers]


@dataclass(frozen=True)
class ShippedShard:
    """A shard whose samples are in the object store."""

    source: str
    number: int
    count: int
    samples: tuple

    def arguments(self, folder: Path) -> list[str]:
        """Writes the samples below `folder`. Each has a folder of its own, numbered in order."""
        for place, reference in enumerate(self.samples):
            for name, content in ray.get(reference):
                target = (folder / f"{place:08}" / name).resolve()
                if not target.is_relative_to(folder.resolve()):
                    raise OctetRayError(f"the sample `{name}` would be written outside of its folder; rename it", 3)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        own = ["--source", self.source, "--shard", f"{self.number}/{self.count}"]
        return ["--samples", str(folder), *own]
