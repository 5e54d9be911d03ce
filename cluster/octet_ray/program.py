"""The program: the native one or the npm package, where it is, and how a shard runs it."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from .errors import Interrupted, OctetRayError

# `prctl` option: the signal that a process receives when its parent ends.
PR_SET_PDEATHSIG = 1
# Exit codes of octet that depend on the command or its input, so another try ends the same way.
FINAL_CODES = (2, 3, 70)


def find(given: str | None) -> Path:
    """The program to use: the one given, $OCTET, or `octet` on the path."""
    for place in (given, os.environ.get("OCTET")):
        if place:
            path = Path(place)
            if not path.is_file():
                raise OctetRayError(f"there is no program {place}; build it with `make build`, or name another", 2)
            return path.resolve()
    found = shutil.which("octet") or shutil.which("octet-onnx")
    if not found:
        raise OctetRayError(
            "neither `octet` nor `octet-onnx` of the npm package is on the path; name one with --octet, or set the "
            "variable OCTET",
            2,
        )
    return Path(found).resolve()


def is_package(program: Path) -> bool:
    """True for the command of the npm package, which Node.js runs."""
    return program.suffix == ".js"


def _end_with_parent() -> None:
    """Ends the program when its worker is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(program: Path, arguments: list[str]) -> str:
    """Runs the program and returns what it printed.

    A refusal becomes an error with its sentence. An end by a signal or a full disk is `Interrupted`.
    """
    call = ["node", str(program)] if is_package(program) else [str(program)]
    try:
        done = subprocess.run(
            [*call, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            preexec_fn=_end_with_parent,
            check=False,
        )
    except FileNotFoundError:
        raise OctetRayError(f"can't start {call[0]}; install Node.js on every node, or use the native program") from None
    if done.returncode == 0:
        return done.stdout
    lines = [line for line in done.stderr.splitlines() if not line.startswith("octet: note:")]
    said = lines[-1].removeprefix("octet: ") if lines else f"octet ended with {done.returncode}"
    if done.returncode in FINAL_CODES:
        raise OctetRayError(said, done.returncode)
    raise Interrupted(said)
