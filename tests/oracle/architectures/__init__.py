"""Published architectures as ONNX models with seeded random weights.

They stand for the real networks where size, shapes, operators, speed and memory matter. They have the
structure, parameters and multiplications of the originals; what they answer means nothing. `BUILDERS`
lists them. On the command line, from the folder tests/oracle:

    python -m architectures NAME OUT.onnx
"""

from .resnet import resnet18, resnet50

BUILDERS = {
    "resnet18": resnet18,
    "resnet50": resnet50,
}


def build(name):
    """The model of this name; each call makes it anew."""
    if name not in BUILDERS:
        raise ValueError(f"no architecture is called {name!r}; there are {', '.join(BUILDERS)}")
    return BUILDERS[name]()
