"""Samples of the models in package_manifest.py: photos, pages, voices, and seeded characters,
signals and graphs where no data comes with the model.

A maker returns samples as dictionaries of arrays, or as pictures. Pictures are given to Octet as
files, so that it proposes the preprocessing.
"""

import io

import corpus_samples
import numpy as np
import reference_runtimes
from audio_tasks import RATE, voice
from PIL import Image

COUNT = 8  # samples of a model; the first half calibrates, the second is compared


def chance(seed):
    return np.random.default_rng(seed)


def photos(corpus):
    """Photos of different sizes."""
    files = corpus_samples.photos(corpus.package("photos"))
    return [Image.open(io.BytesIO(data)).convert("RGB") for _, _, data in files[:COUNT]]


def pages(corpus):
    """Pages of rendered text."""
    return [corpus_samples.text_page(index) for index in range(COUNT)]


def lines(corpus):
    """Lines of rendered text, as the recognizers of PaddleOCR take them."""
    return corpus_samples.ppocr_rec()[:COUNT]


def rotated_pages(corpus):
    """Pages in four orientations."""
    return [corpus_samples.text_page(index, 400, 400).rotate(90 * (index % 4)) for index in range(COUNT)]


def sounds(seconds=2.0):
    return [voice(chance(seed), seconds) for seed in range(COUNT)]


def pcm(corpus):
    """Voices in the scale of 16-bit integers, as openWakeWord takes them."""
    return [{"input": (sound * 32767)[None].astype(np.float32)} for sound in sounds()]


def nine_seconds(corpus):
    """Voices as long as DNSMOS hears."""
    return [{"input_1": sound[None, :144160].astype(np.float32)} for sound in sounds(9.1)]


def spectra(corpus):
    """Windows of 76 frames of the first model of openWakeWord."""
    outputs = reference_runtimes.run(corpus.model("wake_melspectrogram"), pcm(corpus))
    frames = [next(iter(output.values())).squeeze((0, 1)) / 10 + 2 for output in outputs]
    return [{"input_1": frame[None, :76, :, None].astype(np.float32)} for frame in frames]


def wake_features(corpus):
    """Sixteen embeddings of the second model of openWakeWord, 80 ms apart."""
    outputs = reference_runtimes.run(corpus.model("wake_melspectrogram"), pcm_of(sounds(4.0)))
    samples = []
    for output in outputs:
        frame = (next(iter(output.values())).squeeze((0, 1)) / 10 + 2).astype(np.float32)
        windows = [{"input_1": frame[None, at : at + 76, :, None]} for at in range(0, 8 * 16, 8)]
        embedded = reference_runtimes.run(corpus.model("wake_embedding"), windows)
        rows = [next(iter(one.values())).reshape(96) for one in embedded]
        samples.append({"onnx::Flatten_0": np.stack(rows)[None].astype(np.float32)})
    return samples


def pcm_of(given):
    return [{"input": (sound * 32767)[None].astype(np.float32)} for sound in given]


def windows_of_voice(size, **empty):
    """A 32nd of a second of voice with an empty state."""
    sr = np.array(RATE, np.int64)
    return [{"input": sound[None, 8000 : 8000 + size], "sr": sr, **empty} for sound in sounds()]


def voice_windows(corpus):
    return windows_of_voice(576, state=np.zeros((2, 1, 128), np.float32))


def voice_windows_legacy(corpus):
    zeros = np.zeros((2, 1, 64), np.float32)
    return windows_of_voice(512, h=zeros, c=zeros)


def characters(kind, shape, **sizes):
    """Seeded numbers of characters, for each input of so large a vocabulary."""

    def one(seed):
        return {name: chance(seed).integers(1, size, shape).astype(kind) for name, size in sizes.items()}

    return [one(seed) for seed in range(COUNT)]


def thai_pairs(corpus):
    return characters(np.int64, (1, 2, 60), input=70)


def thai_windows(corpus):
    return characters(np.float32, (60, 21), input_1=170, input_2=11)


def thai_windows_and_words(corpus):
    return characters(np.float32, (60, 21), input1=170, input2=11, input3=11)


def hebrew(corpus):
    return characters(np.float32, (1, 60), input_1=30)


def khmer(corpus):
    return [{"x": chance(seed).integers(2, 80, (1, 60)), "mask": np.ones((1, 60), bool)} for seed in range(COUNT)]


def names(corpus):
    """Letters of a name, from ids of the alphabet."""
    return [{"src": chance(seed).integers(4, 40, (1, 9)), "src_mask": np.ones((1, 9), bool)} for seed in range(COUNT)]


def name_prefixes(corpus):
    """Names after the encoder, and the first letters of the answer."""
    given = names(corpus)
    encoded = reference_runtimes.run(corpus.model("romanizer_encoder"), given)
    return [
        {"prefix": chance(seed).integers(4, 60, (1, 4)), "memory": made["memory_out"], "src_mask": made["src_mask_out"], "hidden": made["hidden_out"]}
        for seed, made in enumerate(encoded)
    ]


def diacritics(corpus):
    """Arabic letters without their marks."""
    length = np.array([40], np.int64)
    return [
        {"char_inputs": chance(seed).integers(3, 40, (1, 40)), "diac_inputs": np.zeros((1, 40), np.int64), "input_lengths": length}
        for seed in range(COUNT)
    ]


def waves(channels, length, seed, rate=256):
    """Sums of slow waves with noise, like an electroencephalogram."""
    random, t = chance(seed), np.arange(length) / rate
    sound = np.zeros((channels, length))
    for _ in range(6):
        frequency, phase = random.uniform(0.5, 30), random.uniform(0, 6, (channels, 1))
        sound += np.sin(2 * np.pi * frequency * t + phase) * random.uniform(0.2, 1) / frequency**0.5
    return (sound + random.standard_normal((channels, length)) * 0.1).astype(np.float32)


def brain_bands(corpus):
    """Energies of a hundred bands over time."""
    return [{"x": np.abs(waves(100, 120, seed, 20))[None]} for seed in range(COUNT)]


def brain_waves(corpus):
    return [{"raw_signal": waves(1, 7500, seed, 250)[None], "spectrogram": np.abs(waves(15, 7500, seed + 50, 250))[None]} for seed in range(COUNT)]


def reactions(corpus):
    """Chains of atoms with their distances."""

    def one(seed):
        random, size = chance(seed), 24
        places = np.arange(size)
        distances = np.minimum(np.abs(places[:, None] - places), 9) + 1
        return {
            "atoms": random.integers(3, 20, (1, size)), "neighbors": random.integers(1, 6, (1, size)),
            "distances": distances[None].astype(np.int64), "roles": (2 + (places >= size // 2)).astype(np.int64)[None],
        }  # fmt: skip

    return [one(seed) for seed in range(COUNT)]


def molecules(corpus):
    """Rings of atoms with seeded features."""

    def one(seed):
        random, size = chance(seed), 6 + seed
        around = np.arange(size)
        there, back = np.stack([around, (around + 1) % size]), np.stack([(around + 1) % size, around])
        normal = lambda *shape: random.standard_normal(shape).astype(np.float32)  # noqa: E731
        return {
            "feat": (random.random((size, 85)) < 0.1).astype(np.float32),
            "edge_feat": (random.random((2 * size, 13)) < 0.2).astype(np.float32),
            "edge_index": np.concatenate([there, back], 1), "laplacian_eigvec": normal(size, 8),
            "laplacian_eigval": np.abs(normal(size, 8)), "rw_return_probs": random.random((size, 16)).astype(np.float32),
            "batch": np.zeros(size, np.int64), "graph_slots": np.zeros(1, np.float32),
        }  # fmt: skip

    return [one(seed) for seed in range(COUNT)]


# Most metres and radians from the middle in which the models of reachy-mini undo each other.
REACH = np.array([0.015, 0.015, 0.015, 0.26, 0.26, 0.5])


def poses(corpus):
    """Places and turns of a head, a row of a table each."""
    rows = chance(26).uniform(-REACH, REACH, (64, 6)).astype(np.float32)
    return [{"input": row[None]} for row in rows]


def joints(corpus):
    """Angles of the joints for these poses."""
    outputs = reference_runtimes.run(corpus.model("reachy_ik"), poses(corpus))
    return [{"input": next(iter(output.values()))} for output in outputs]


def scans(corpus):
    """Grey photos in the size of the model, with the channels last."""
    return [{"input": np.asarray(photo.convert("L").convert("RGB").resize((240, 240)), np.float32)[None] / np.float32(255)} for photo in photos(corpus)]
