"""Text in images: pages with known lines, characters to click on, and the results of detectors."""

import io
import random

import numpy as np
from corpus_samples import FONT, planes
from PIL import Image, ImageDraw, ImageFont

SIDE = 416  # of what the detector of characters takes
LETTERS = "ABCDEFGHKMNPRSTWXYZ"


def overlap(one, other):
    """Intersection over union of two boxes."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return width * height / (area - width * height)


# --- lines of text -------------------------------------------------------------------------------


def _runs(row):
    """Runs of set entries in a row of a mask: (first, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
    return list(zip(edges[::2], edges[1::2]))


def regions(mask):
    """Boxes of the connected components of a mask."""
    boxes, joined, above = [], [], []

    def whole(index):
        while joined[index] != index:
            index = joined[index]
        return index

    for y, row in enumerate(mask):
        here = []
        for begin, end in _runs(row):
            own = len(boxes)
            boxes.append((begin, y, end, y + 1))
            joined.append(own)
            for other_begin, other_end, other in above:
                if begin < other_end and other_begin < end and (other := whole(other)) != own:
                    (a, b, c, d), (e, f, g, h) = boxes[own], boxes[other]
                    boxes[own] = (min(a, e), min(b, f), max(c, g), max(d, h))
                    joined[other] = own
            here.append((begin, end, own))
        above = here
    return [box for index, box in enumerate(boxes) if joined[index] == index]


def text_boxes(probabilities):
    """Lines from a probability map, grown by the shrink factor of its training."""
    found = []
    for left, top, right, bottom in regions(probabilities > 0.3):
        width, height = right - left, bottom - top
        if min(width, height) < 3 or probabilities[top:bottom, left:right].mean() < 0.5:
            continue
        grown = width * height * 1.5 / (2 * (width + height))
        found.append((max(0, left - grown), max(0, top - grown), right + grown, bottom + grown))
    return found


def line_input(page, box):
    """A line cut out of a page, as the recogniser takes it."""
    line = page.crop(tuple(round(edge) for edge in box))
    width = max(48, round(line.width * 48 / line.height))
    return planes(line.resize((width, 48), Image.BILINEAR), 0.5, 0.5, bgr=True, scale=1 / 255)


# --- characters to click on ----------------------------------------------------------------------


def characters(photo, seed, count=5):
    """A photo with letters on it, and the box of each."""
    chance = random.Random(seed)
    image = Image.open(io.BytesIO(photo)).convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
    draw, boxes = ImageDraw.Draw(image), []
    while len(boxes) < count:
        font = ImageFont.truetype(str(FONT), chance.randrange(45, 70))
        at, letter = (chance.randrange(10, 330), chance.randrange(10, 330)), chance.choice(LETTERS)
        box = draw.textbbox(at, letter, font=font, stroke_width=4)
        near = (box[0] - 10, box[1] - 10, box[2] + 10, box[3] + 10)
        if any(overlap(near, other) > 0 for other in boxes):
            continue
        ink = tuple(chance.randrange(256) for _ in range(3))
        draw.text(at, letter, ink, font, stroke_width=4, stroke_fill=tuple(255 - part for part in ink))
        boxes.append(box)
    return image, boxes


def detected(rows):
    """Boxes of a one-class YOLOX head, best first: scores above 0.3, without duplicates."""
    corners, steps = [], []
    for step in (8, 16, 32):
        side = SIDE // step
        corners.append(np.stack(np.meshgrid(np.arange(side), np.arange(side)), 2).reshape(-1, 2))
        steps.append(np.full((side * side, 1), step))
    corners, steps = np.concatenate(corners), np.concatenate(steps)
    middle, size = (rows[:, :2] + corners) * steps, np.exp(rows[:, 2:4]) * steps
    boxes, scores = np.concatenate([middle - size / 2, middle + size / 2], 1), rows[:, 4] * rows[:, 5]
    kept = []
    for at in np.argsort(-scores):
        if scores[at] < 0.3:
            break
        if all(overlap(boxes[at], other) < 0.45 for other in kept):
            kept.append(boxes[at])
    return kept
