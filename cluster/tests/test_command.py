"""Parts of the package that need no cluster."""

import pytest
from conftest import WITHOUT_RAY

if WITHOUT_RAY:
    pytest.skip(WITHOUT_RAY, allow_module_level=True)

from octet_ray import FolderSamples, OctetRayError
from octet_ray.calibration import shard_count
from octet_ray.command import RESULT, arguments, divided
from octet_ray.program import Interrupted, find, run


def test_options_after_two_dashes_go_to_octet_by_their_use():
    options, octet = arguments(["calibrate", "m.onnx", "data", "--out", "q", "--", "--method", "mse", "--image-preset", "lite"])
    assert options.address is None and options.threads == 1
    assert divided(octet) == (["--method", "mse"], ["--image-preset", "lite"])
    assert divided(["--paragraphs", "--rounding", "gptq", "--pad=0"]) == (["--rounding", "gptq"], ["--paragraphs", "--pad=0"])


def test_options_of_a_searchs_result_stay_on_this_machine():
    options, octet = arguments(["search", "m.onnx", "data", "--budget", "kl=0.01", "--", "--json", "--prefer", "size", "--report=r"])
    assert options.budget == "kl=0.01" and options.out is None
    assert divided(octet, RESULT) == (["--prefer", "size"], ["--json", "--report=r"])
    with pytest.raises(SystemExit):
        arguments(["search", "m.onnx", "data", "--budget", "kl=0.01", "--ship-samples"])


def test_shards_suit_the_samples_and_the_processors():
    assert shard_count(500, 2) == 4
    assert shard_count(5000, 2) == 8
    assert shard_count(100, 2) == 2
    assert shard_count(20, 1000) == 3
    assert shard_count(1, 4) == 1


def test_samples_are_counted_as_the_program_does(tmp_path):
    for name in ("a.npz", "b/c.png", "labels.csv", ".hidden/x.npz", "test_data_set_0/input_0.pb", "test_data_set_0/input_1.pb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert FolderSamples(tmp_path).count() == 3
    with pytest.raises(OctetRayError, match="there is no such file or folder"):
        FolderSamples(tmp_path / "absent").count()


def test_the_program_is_found_and_its_ends_are_told_apart(tmp_path, octet):
    assert find(str(octet)) == octet.resolve()
    with pytest.raises(OctetRayError, match="there is no program"):
        find(str(tmp_path / "absent"))
    with pytest.raises(OctetRayError, match="can't read the model") as refused:
        run(octet, ["inspect", "absent.onnx"])
    assert refused.value.code == 3
    killed = tmp_path / "killed"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    with pytest.raises(Interrupted, match="octet ended with -9"):
        run(killed, [])


def test_the_npm_package_is_found_on_the_path(tmp_path, monkeypatch):
    monkeypatch.delenv("OCTET")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OctetRayError, match="neither `octet` nor `octet-onnx`"):
        find(None)
    script = tmp_path / "package/command/octet.js"
    script.parent.mkdir(parents=True)
    script.write_text("")
    script.chmod(0o755)
    (tmp_path / "octet-onnx").symlink_to(script)
    assert find(None) == script
    with pytest.raises(OctetRayError, match="can't start node; install Node.js"):
        run(script, [])
