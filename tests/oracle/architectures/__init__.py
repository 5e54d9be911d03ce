"""Published architectures as ONNX models with seeded random weights.

They stand for the real networks where size, shapes, operators, speed and memory matter. They have the
structure, parameters and multiplications of the originals; what they answer means nothing. `BUILDERS`
lists them. On the command line, from the folder tests/oracle:

    python -m architectures NAME OUT.onnx
"""

from .convnext import convnext_tiny
from .esrgan import esrgan_x4
from .mobilenet import dwblock_k5d5, lraspp_mobilenet_v3_large, mobilenet_v2, mobilenet_v3_large
from .resnet import resnet18, resnet50
from .yolo import yolo8n_640

BUILDERS = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3_large": mobilenet_v3_large,
    "lraspp_mobilenet_v3_large": lraspp_mobilenet_v3_large,
    "dwblock_k5d5": dwblock_k5d5,
    "convnext_tiny": convnext_tiny,
    "esrgan_x4": esrgan_x4,
    "yolo8n_640": yolo8n_640,
}


def build(name):
    """The model of this name; each call makes it anew."""
    if name not in BUILDERS:
        raise ValueError(f"no architecture is called {name!r}; there are {', '.join(BUILDERS)}")
    return BUILDERS[name]()
