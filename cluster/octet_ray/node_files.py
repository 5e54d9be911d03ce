"""Files that every node needs, sent once to each: the program, the model, its data, earlier passes."""

import fcntl
import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

import ray

# Bytes of one object. A file is sent in pieces, so that no copy of a large model is made.
PIECE = 256 << 20


@dataclass(frozen=True)
class SentFile:
    """A file in Ray's object store."""

    name: str
    sha256: str
    pieces: tuple
    executable: bool = False


def send(path: Path, name: str | None = None) -> SentFile:
    """Puts a file into the object store."""
    checksum = hashlib.sha256()
    pieces = []
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            checksum.update(piece)
            pieces.append(ray.put(piece))
    return SentFile(name or path.name, checksum.hexdigest(), tuple(pieces), os.access(path, os.X_OK))


def _folder() -> Path:
    """The folder of this node's files. Nodes that share a machine have one each."""
    place = os.environ.get("OCTET_RAY_CACHE") or Path(tempfile.gettempdir()) / f"octet-ray-{os.getuid()}"
    folder = Path(place) / ray.get_runtime_context().get_node_id()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def receive(files: list[SentFile]) -> Path:
    """A folder with these files on this node. The first worker writes them; the others wait."""
    key = hashlib.sha256("".join(f"{file.name}\0{file.sha256}\0" for file in files).encode()).hexdigest()[:32]
    folder = _folder() / key
    with (_folder() / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return folder
        with tempfile.TemporaryDirectory(dir=_folder()) as beside:
            for file in files:
                target = Path(beside) / "files" / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as out:
                    for piece in file.pieces:
                        out.write(ray.get(piece))
                if file.executable:
                    target.chmod(target.stat().st_mode | stat.S_IXUSR)
            # The name appears when all files are complete.
            (Path(beside) / "files").rename(folder)
    return folder
