"""The architectures that we build have the parameters and multiplications of the published ones.

The counts were read from the original networks as their frameworks export them.
"""

import hashlib
import struct

import numpy as np
import pytest
from architectures import BUILDERS, build, network
from architectures.counts import Counts, count
from architectures.random_weights import normal
from corpus import Corpus, sha256
from corpus_manifest import MODELS

COUNTS = {
    "resnet18": Counts(11_684_712, 1_814_073_344),
    "resnet50": Counts(25_530_472, 4_089_184_256),
    "mobilenet_v2": Counts(3_487_816, 300_774_272),
    "mobilenet_v3_large": Counts(5_470_832, 216_589_760),
    "lraspp_mobilenet_v3_large": Counts(3_209_210, 1_974_665_088),
    "dwblock_k5d5": Counts(11_808, 190_316_544),
    "convnext_tiny": Counts(28_589_128, 4_455_531_264),
    "esrgan_x4": Counts(16_697_995, 293_713_477_632),
    "yolo8n_640": Counts(3_177_112, 4_371_993_600),
    "yolo8n_dynamic": Counts(3_151_915, 4_371_993_600),
    "vit_b_16": Counts(86_542_324, 17_563_828_224),
    "detr_resnet50": Counts(41_939_271, 29_053_516_800),
    "sam2_image_encoder": Counts(40_597_604, 179_229_949_440),
    "sam2_image_encoder_dynshape": Counts(40_597_604, 179_229_949_440),
    "sam2_image_decoder": Counts(5_241_575, 1_827_851_264),
    "blip_image_encoder": Counts(86_090_496, 55_483_582_464),
    "blip_text_decoder": Counts(161_323_580, 12_467_011_584),
}

# Dynamic dimensions have the sizes of the fixed architecture.
SIZES = {"batch": 1, "height": 640, "width": 640}


def test_each_architecture_has_its_counts():
    assert set(COUNTS) == set(BUILDERS)


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_and_multiplications_are_those_of_the_original(name, monkeypatch):
    # Counts do not depend on the weights' values, which take most of the time to make.
    monkeypatch.setattr(network, "normal", lambda seed, shape, *_: np.zeros(shape, np.float32))
    assert count(build(name), SIZES) == COUNTS[name]


def test_building_again_gives_the_same_bytes():
    first, second = (build("dwblock_k5d5").SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


def test_weights_are_the_exact_sums_of_integers():
    seed, std, mean, size = "a seed", 0.3, 0.01, (1 << 20) + 3
    values = normal(seed, (size,), std, mean)
    generator = np.random.PCG64(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))
    words = [int(word) for word in generator.random_raw(2 * size)]
    for at in (0, 1, (1 << 20) - 1, 1 << 20, size - 1):
        both = words[2 * at] | words[2 * at + 1] << 64
        total = sum(both >> 16 * field & 0xFFFF for field in range(8)) - 4 * 0xFFFF
        product = as_float32(total * as_float32(std / (8 * (2**32 - 1) / 12) ** 0.5))
        assert values[at] == as_float32(product + as_float32(mean))


def as_float32(value):
    """A double rounded to float32; exact for a product or a sum of two float32 values."""
    return struct.unpack("f", struct.pack("f", value))[0]


def test_weights_are_near_a_normal_distribution():
    values = normal("another seed", (1000, 1000), 0.5, 0.25)
    assert abs(values.mean() - 0.25) < 0.003 and abs(values.std() - 0.5) < 0.003
    within = [np.mean(abs(values - 0.25) < 0.5 * deviations) for deviations in (1, 2, 3)]
    assert np.allclose(within, (0.683, 0.954, 0.997), atol=0.01)


def test_the_corpus_builds_an_architecture_again_if_another_version_wrote_the_file(tmp_path):
    old = tmp_path / "architectures" / "resnet50.onnx"
    old.parent.mkdir()
    old.write_bytes(b"by another version")
    assert Corpus(tmp_path).model("resnet50") == old
    assert sha256(old) == MODELS["resnet50"].sha256
