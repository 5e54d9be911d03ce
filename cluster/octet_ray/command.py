"""The command `octet-ray`."""

import argparse
import signal
import socket
import sys
import traceback
from pathlib import Path

import ray

from .calibration import Calibration, Comparison, calibrate, compare
from .driver import STOPPED, supervised
from .errors import OctetRayError
from .samples import FolderSamples, ShippedSamples
from .search import Search, search

EPILOG = """\
Options after `--` go to octet: settings such as `--method mse --config settings.yaml`, and options of
images and texts such as `--image-preset lite`. Exit codes are those of octet.
"""
# Options of octet that concern samples: `octet quantize --stats` takes them from the statistics.
READING = (
    "--image-preset --image-size --resize --pad --shorter-side --layout --channels --scale --mean --std "
    "--tokenizer --text-field --max-length --texts --paragraphs"
).split()
# Options of octet that concern the result of a search, and no shard.
RESULT = ("--report", "--save-settings", "--save-sensitivities", "--json")
# Options without a value.
FLAGS = ("--paragraphs", "--json")


def arguments(given: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The parsed options, and those for octet."""
    octet: list[str] = []
    if "--" in given:
        at = given.index("--")
        given, octet = given[:at], given[at + 1 :]
    parser = argparse.ArgumentParser("octet-ray", description=__doc__, epilog=EPILOG)
    commands = parser.add_subparsers(dest="command", required=True)
    calibration = commands.add_parser("calibrate", help="quantize a model with samples that the cluster runs", epilog=EPILOG)
    calibration.add_argument("model", type=Path, help="the float model")
    calibration.add_argument("samples", type=Path, help="a folder of samples")
    calibration.add_argument("--out", type=Path, required=True, help="file of the quantized model")
    comparison = commands.add_parser("compare", help="compare a quantized model with its float model", epilog=EPILOG)
    comparison.add_argument("float", type=Path, help="the float model")
    comparison.add_argument("quantized", type=Path, help="the quantized model")
    comparison.add_argument("samples", type=Path, help="a folder of samples")
    searching = commands.add_parser("search", help="search the bits of each tensor under a budget", epilog=EPILOG)
    searching.add_argument("model", type=Path, help="the float model")
    searching.add_argument("samples", type=Path, help="a folder of samples; one half chooses, the other verifies")
    searching.add_argument("--budget", required=True, help="the limit, such as accuracy=0.5%% or bytes=30%%")
    searching.add_argument("--out", type=Path, help="file of the quantized model")
    for one in (calibration, comparison, searching):
        one.add_argument("--address", help="the cluster, as HOST:PORT or `auto`; without it a local Ray starts")
        one.add_argument("--octet", help="the native program, or octet.js of the npm package [default: $OCTET, or octet or octet-onnx on the path]")
        one.add_argument("--shards", type=int, help="number of shards of a pass [default: one to four for each processor]")
        one.add_argument("--threads", type=int, default=1, help="processors of each shard [default: 1]")
        if one is not searching:  # Every shard of a search lists all samples.
            one.add_argument("--ship-samples", action="store_true", help="send the samples; nodes need not see the folder")
        one.add_argument("--skip-bad", action="store_true", help="leave out samples that can't be used, and count them")
        one.add_argument("--keep", type=Path, help="folder for the merged statistics of each pass")
    return parser.parse_args(given), octet


def divided(octet: list[str], names=READING) -> tuple[list[str], list[str]]:
    """The options for octet: settings, and those of these names, by default those of samples."""
    settings: list[str] = []
    named: list[str] = []
    rest = iter(octet)
    for option in rest:
        name = option.split("=")[0]
        target = named if name in names else settings
        target.append(option)
        if target is named and name not in FLAGS and "=" not in option:
            target.append(next(rest, ""))
    return settings, named


def require_reachable(address: str) -> None:
    """Fails if nothing listens there. Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host or "127.0.0.1", int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise OctetRayError(
            f"can't reach the Ray cluster {address}: {error}; check --address and `ray status`"
        ) from None


def connect(address: str | None) -> None:
    """Connects to a cluster, or starts a local Ray. Prints the dashboard's link if there is one."""
    if address:
        require_reachable(address)
    try:
        # Without `local`, Ray would join a cluster that happens to run on this machine.
        context = ray.init(address=address or "local", include_dashboard=None, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, TimeoutError) as error:
        why = str(error).splitlines()[0]
        raise OctetRayError(f"can't reach the Ray cluster {address}: {why}; check --address and `ray status`") from None
    # Ray's own handler would print its stack.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if context.dashboard_url:
        print(f"octet-ray: dashboard: http://{context.dashboard_url}", file=sys.stderr)


def run(given: list[str]) -> None:
    """Runs the command."""
    options, octet = arguments(given)
    for name in ("shards", "threads"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise OctetRayError(f"--{name} must be at least 1", 2)
    settings, reading = divided(octet)
    shared = {
        "settings": settings,
        "reading": reading,
        **{name: getattr(options, name) for name in ("octet", "shards", "threads", "skip_bad", "keep")},
    }
    connect(options.address)
    try:
        told = _run(options, shared)
        print(told, end="")
    finally:
        ray.shutdown()


def _run(options: argparse.Namespace, shared: dict) -> str:
    folder = options.samples
    if options.command == "search":
        shared["settings"], result = divided(shared["settings"], RESULT)
        if options.out:
            result += ["--out", str(options.out)]
        return search(Search(model=options.model, budget=options.budget, result=result, **shared), FolderSamples(folder.resolve()))
    samples = ShippedSamples.from_folder(folder) if options.ship_samples else FolderSamples(folder)
    if options.command == "calibrate":
        return calibrate(Calibration(model=options.model, out=options.out, **shared), samples)
    return compare(Comparison(float=options.float, quantized=options.quantized, **shared), samples)


def ended() -> int:
    """Runs the command and returns its exit code; an error is one line."""
    try:
        run(sys.argv[1:])
    except OctetRayError as error:
        print(f"octet-ray: {error.message}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print(f"octet-ray: {STOPPED}", file=sys.stderr)
        return 1
    except SystemExit as exit:  # The parser of options said why.
        return int(exit.code or 0)
    except Exception:
        traceback.print_exc()
        return 70
    return 0


def main() -> None:
    """Runs the command in a process that Ray may end."""
    sys.exit(supervised(ended))
