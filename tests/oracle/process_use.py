"""Time and peak memory of a command.

    process_use.py COMMAND...    runs it and prints them as JSON, the last line

A process starts with the peak of the one that spawned it, so a small interpreter stands between.
"""

import json
import os
import subprocess
import sys
import time


def run(command):
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    used = {"seconds": seconds, "user_seconds": usage.ru_utime, "system_seconds": usage.ru_stime, "peak_bytes": usage.ru_maxrss << 10}
    print(json.dumps(used))
    return process.returncode


def measured(command, env=None):
    """Runs a command; returns its use of the machine and the lines of its output."""
    words = [sys.executable, "-S", "-E", __file__, *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[4:])} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    *lines, used = done.stdout.splitlines()
    return json.loads(used), lines


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
