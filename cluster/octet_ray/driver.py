"""The process that talks to Ray. Ray ends a process that loses its head, so a parent outlives it."""

import os
import signal
import sys
from collections.abc import Callable

LOST = (
    "the connection to the head of the Ray cluster was lost; no file was replaced; "
    "check the head with `ray status`, and start the command again"
)
STOPPED = "stopped; no file was replaced"
# What the process writes when it ends by itself.
ENDED = b"ended"


def supervised(run: Callable[[], int]) -> int:
    """Runs a function in a process of its own and returns its exit code. Says so if Ray ended it."""
    if not hasattr(os, "fork"):  # Windows: Ray's own message must do.
        return run()
    reading, writing = os.pipe()
    # Ray starts its threads later, so this process has one thread and may fork.
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = run()
        sys.stdout.flush()
        os.write(writing, ENDED)
        os._exit(code)
    os.close(writing)
    # Ctrl+C reaches both processes. The child ends in order, and the parent waits.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # Programs that Ray started may hold the pipe open, and `read` would wait for their end.
    os.set_blocking(reading, False)
    try:
        by_itself = os.read(reading, len(ENDED)) == ENDED
    except BlockingIOError:
        by_itself = False
    if by_itself:
        return code
    stopped = code == -signal.SIGTERM
    print(f"octet-ray: {STOPPED if stopped else LOST}", file=sys.stderr)
    return 1
