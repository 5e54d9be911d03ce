"""Published architectures as ONNX models with seeded random weights.

They stand for the real networks where size, shapes, operators, speed and memory matter. They have
the structure, parameters and multiplications of the originals. Their answers mean nothing.
`BUILDERS` lists them. On the command line, from the folder tests/oracle:

    python -m architectures NAME OUT.onnx
"""

from .blip import blip_image_encoder, blip_text_decoder
from .convnext import convnext_tiny
from .detr import detr_resnet50
from .esrgan import esrgan_x4
from .mobilenet import dwblock_k5d5, lraspp_mobilenet_v3_large, mobilenet_v2, mobilenet_v3_large
from .resnet import resnet18, resnet50
from .sam2_decoder import sam2_image_decoder
from .sam2_encoder import sam2_image_encoder, sam2_image_encoder_dynshape
from .vit import vit_b_16
from .yolo import yolo8n_640, yolo8n_dynamic

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
    "yolo8n_dynamic": yolo8n_dynamic,
    "vit_b_16": vit_b_16,
    "detr_resnet50": detr_resnet50,
    "sam2_image_encoder": sam2_image_encoder,
    "sam2_image_encoder_dynshape": sam2_image_encoder_dynshape,
    "sam2_image_decoder": sam2_image_decoder,
    "blip_image_encoder": blip_image_encoder,
    "blip_text_decoder": blip_text_decoder,
}


def build(name):
    """The model of this name; each call makes it anew."""
    if name not in BUILDERS:
        raise ValueError(f"no architecture is called {name!r}; there are {', '.join(BUILDERS)}")
    return BUILDERS[name]()
