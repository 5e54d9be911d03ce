"""Audio models that were not used in development, with generated sounds of known content.

They were added after every threshold was set and decide none: they show how the defaults do on
unknown models.
"""

import numpy as np
from tasks import Task, each, fold, first

RATE = 16000
# Formants of each vowel.
VOWELS = np.array([[730, 1090, 2440], [270, 2290, 3010], [300, 870, 2240], [530, 1840, 2480], [570, 840, 2410]], float)


def rise_and_fall(count):
    return np.hanning(count + 2)[1:-1]


def vowel(random, pitch, length):
    """A vowel that changes into another: harmonics weighted by the formants."""
    t = np.arange(length) / RATE
    begin, end = VOWELS[random.integers(len(VOWELS), size=2)]
    formants = begin + (end - begin) * (t / t[-1])[:, None]
    swing = np.sin(2 * np.pi * random.uniform(1, 3) * t + random.uniform(0, 6))
    frequency = pitch * (1 + 0.15 * swing)
    phase = 2 * np.pi * np.cumsum(frequency) / RATE
    sound = np.zeros(length)
    for harmonic in range(1, int(4000 / pitch / 1.2)):
        apart = (harmonic * frequency[:, None] - formants) / (60 + 30 * np.arange(3))
        loud = (1 / (1 + apart**2) / np.arange(1, 4)).sum(axis=1) + 0.02
        sound += loud / harmonic**0.5 * np.sin(harmonic * phase)
    return sound * rise_and_fall(length) ** 0.6 * random.uniform(0.5, 1)


def voice(random, seconds):
    """Sound that a voice activity detector takes for speech: vowels with hisses and pauses."""
    count = int(seconds * RATE)
    pitch, sound = random.uniform(90, 220), np.zeros(count)
    at = int(RATE * random.uniform(0.02, 0.1))
    while at < count - RATE // 8:
        length = min(int(RATE * random.uniform(0.12, 0.3)), count - at)
        sound[at : at + length] += vowel(random, pitch, length)
        at += length
        if random.random() < 0.4:
            hiss = min(int(RATE * 0.07), count - at)
            noise = np.diff(random.standard_normal(hiss + 1)) * 0.15
            sound[at : at + hiss] += noise * rise_and_fall(hiss)
            at += hiss
        if random.random() < 0.15:
            at += int(RATE * random.uniform(0.1, 0.3))
    sound *= 0.25 / max(1e-9, np.abs(sound).max())
    return (sound + random.standard_normal(count) * 0.001).astype(np.float32)


def tone(random, frequency, seconds, rate):
    """A note of some instrument: harmonics that fade."""
    t = np.arange(int(seconds * rate)) / rate
    fade, bright = random.uniform(0.5, 2), random.uniform(0.3, 0.8)
    parts = [bright**k * np.sin(2 * np.pi * (k + 1) * frequency * t) for k in range(8) if (k + 1) * frequency < rate / 2.2]
    sound = sum(parts) * np.exp(-fade * t) * np.minimum(1, t / 0.01)
    return (0.2 * sound + random.standard_normal(len(t)) * 0.001).astype(np.float32)


def spoken(corpus):
    """A 32nd of a second with its history, of a voice, noise or tone; the state is the float
    model's.
    """
    import reference_runtimes

    model = reference_runtimes.session(corpus.model("silero_vad"))
    sr = np.array(RATE, np.int64)

    def sample(seed):
        random = np.random.default_rng(seed)
        kind = seed % 4
        noise, whistle = random.uniform(0.001, 0.1), random.uniform(200, 2000)
        sound = voice(random, 2.0) if kind < 2 else tone(random, whistle, 2.0, RATE) if kind == 2 else (
            random.standard_normal(2 * RATE) * noise).astype(np.float32)  # fmt: skip
        state, context, seen = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), []
        for part in sound[: len(sound) // 512 * 512].reshape(-1, 512):
            given = {"input": np.concatenate([context, part])[None], "state": state, "sr": sr}
            probability, state = model.run(None, given)
            seen.append((given, probability[0, 0]))
            context = part[-64:]
        # Frames where the float model is surest and right: a pause in speech is no speech.
        given, _ = (max if kind < 2 else min)(seen[8:], key=lambda pair: pair[1])
        return given, kind < 2

    @each
    def right(outputs, truth):
        return int((outputs["output"][0, 0] > 0.5) == truth), 1

    return Task("windows", fold(sample, range(16), range(100, 160)), right, held_out=True)


def pitches(corpus):
    """The pitch of a note, a thirtieth off at most."""

    def sample(seed):
        random = np.random.default_rng(seed)
        frequency = np.exp(random.uniform(np.log(80), np.log(1200)))
        bounds = {"fmin": np.array(46.875, np.float32), "fmax": np.array(2093.75, np.float32)}
        return {"audio": tone(random, frequency, 1.0, RATE)[None], **bounds}, frequency

    @each
    def right(outputs, truth):
        return int(abs(np.median(outputs["pitch"]) / truth - 1) < 1 / 30), 1

    return Task("notes", fold(sample, range(16), range(100, 160)), right, held_out=True)


def keys(corpus):
    """The piano key that was struck."""

    def sample(seed):
        random = np.random.default_rng(seed)
        key = int(random.integers(24, 72))
        sound = tone(random, 27.5 * 2 ** (key / 12), 2.0, 22050)[:43844]
        return {"serving_default_input_2:0": np.pad(sound, (0, 43844 - len(sound)))[None, :, None]}, key

    @each
    def right(outputs, truth):
        # Confidence for each key, one row per frame.
        return int(outputs["StatefulPartitionedCall:1"][0].mean(axis=0).argmax() == truth), 1

    return Task("notes", fold(sample, range(8), range(100, 160)), right, held_out=True)


def whole_or_torn(corpus):
    """The better of a voice and its copy with a fifth of the packets lost."""
    window = np.hamming(513)[:-1]

    def features(sound):
        frames = np.pad(sound, (256, 512))
        frames = np.stack([frames[at : at + 512] for at in range(0, len(sound), 256)])
        power = np.abs(np.fft.rfft(frames * window)) ** 2
        return (np.log(np.maximum(power, 1e-12)) / 20).astype(np.float32)

    def sample(seed):
        random = np.random.default_rng(seed // 2)
        sound = voice(random, 3.0)
        lost = random.random(len(sound) // 320) < 0.2
        if seed % 2:
            sound[: len(lost) * 320].reshape(-1, 320)[lost] = 0
        rater = np.random.default_rng(5).standard_normal((1, 64)).astype(np.float32)
        return {"degraded_audio": features(sound)[None, None], "rater_embed": rater}, seed

    def right(outputs, truths):
        scores = [float(first(each)) for each in outputs]
        pairs = list(zip(scores[::2], scores[1::2]))
        return sum(whole > torn for whole, torn in pairs), len(pairs)

    return Task("pairs", fold(sample, range(12), range(100, 180)), right, held_out=True)


AUDIO_TASKS = {"silero_vad": spoken, "swift_f0": pitches, "basic_pitch": keys, "plcmos": whole_or_torn}
