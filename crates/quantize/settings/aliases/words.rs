//! The table of words, with their meanings here.

use serde_json::{Value, json};

/// The tool that a word belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    OnnxRuntime,
    Quark,
    TransformersJs,
}

impl Tool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::OnnxRuntime => "ONNX Runtime",
            Tool::Quark => "AMD Quark",
            Tool::TransformersJs => "transformers.js",
        }
    }
}

/// The meaning of a word here.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// These keys have the same value.
    Keys(&'static [&'static str]),
    /// This key has the opposite value.
    Opposite(&'static str),
    /// The values have names of their own.
    Values(&'static str, &'static [(&'static str, &'static str)]),
    /// Each name of the list gets this setting.
    Each {
        group: &'static str,
        key: &'static str,
    },
    /// `true` is this document.
    Switch(fn() -> Value),
    /// Not the same as any key; the nearest one.
    Refused(&'static str),
}

use Meaning::{Each, Keys, Opposite, Refused, Switch, Values};
use Tool::{OnnxRuntime, Quark};

const TYPES: &[(&str, &str)] = &[
    ("QInt8", "i8"),
    ("QUInt8", "u8"),
    ("QInt16", "i16"),
    ("QUInt16", "u16"),
    ("QInt4", "i4"),
    ("QUInt4", "u4"),
];
const FORMATS: &[(&str, &str)] = &[("QDQ", "qdq"), ("QOperator", "qoperator")];
const METHODS: &[(&str, &str)] = &[
    ("MinMax", "minmax"),
    ("Percentile", "ort-percentile"),
    ("Entropy", "ort-entropy"),
    ("LayerwisePercentile", "layerwise-percentile"),
];

/// Words at the top of a document.
pub(super) const WORDS: &[(&str, Tool, Meaning)] = &[
    (
        "nodes_to_exclude",
        OnnxRuntime,
        Each {
            group: "by_node",
            key: "float",
        },
    ),
    ("op_types_to_quantize", OnnxRuntime, Keys(&["operators"])),
    ("per_channel", OnnxRuntime, Keys(&["weights.per_channel"])),
    ("reduce_range", OnnxRuntime, Keys(&["weights.reduce_range"])),
    (
        "activation_type",
        OnnxRuntime,
        Values("activations.type", TYPES),
    ),
    ("weight_type", OnnxRuntime, Values("weights.type", TYPES)),
    ("quant_format", OnnxRuntime, Values("format", FORMATS)),
    ("calibrate_method", OnnxRuntime, Values("method", METHODS)),
    (
        "nodes_to_quantize",
        OnnxRuntime,
        Refused("`float` with `'*'`, and `float: false` under `by_node`"),
    ),
    (
        "use_external_data_format",
        OnnxRuntime,
        Refused("no key: Octet writes external data where it is needed"),
    ),
    ("block_size", OnnxRuntime, Refused("`blocks.size`")),
    ("is_symmetric", OnnxRuntime, Refused("`blocks.symmetric`")),
];

/// Words inside `extra_options`.
pub(super) const OPTIONS: &[(&str, Tool, Meaning)] = &[
    (
        "ActivationSymmetric",
        OnnxRuntime,
        Keys(&["activations.symmetric"]),
    ),
    ("WeightSymmetric", OnnxRuntime, Keys(&["weights.symmetric"])),
    (
        "ActivationRestrictedAsymmetric",
        OnnxRuntime,
        Keys(&["activations.snap_zero"]),
    ),
    (
        "MinimumRealRange",
        OnnxRuntime,
        Keys(&["activations.minimum_range", "weights.minimum_range"]),
    ),
    ("QuantizeBias", OnnxRuntime, Keys(&["quantize_bias"])),
    (
        "QDQDisableWeightAdjustForInt32Bias",
        OnnxRuntime,
        Opposite("fit_bias"),
    ),
    (
        "OpTypesToExcludeOutputQuantization",
        OnnxRuntime,
        Each {
            group: "by_operator",
            key: "float_output",
        },
    ),
    (
        "MatMulConstBOnly",
        OnnxRuntime,
        Switch(|| json!({ "by_operator": { "MatMul": { "constant_only": true } } })),
    ),
    (
        "ForceQuantizeNoInputCheck",
        OnnxRuntime,
        Switch(|| json!({ "by_name": { "": { "always": true } } })),
    ),
    (
        "CalibMovingAverage",
        OnnxRuntime,
        Switch(|| json!({ "method": "moving-average" })),
    ),
    (
        "CalibTensorRangeSymmetric",
        OnnxRuntime,
        Keys(&["activations.symmetric"]),
    ),
    (
        "TensorQuantOverrides",
        OnnxRuntime,
        Refused("`tensors` with `type`, `scale`, `zero_point`, `symmetric` and `range`"),
    ),
    (
        "SmoothQuant",
        OnnxRuntime,
        Refused("`equalize`, which scales channels in another way"),
    ),
    (
        "SmoothQuantAlpha",
        OnnxRuntime,
        Refused("`equalize`, which takes a strength from 0 to 1"),
    ),
    (
        "CalibPercentile",
        OnnxRuntime,
        Refused("`method: ort-percentile:99.99`"),
    ),
    (
        "DedicatedQDQPair",
        OnnxRuntime,
        Refused("no key: it changes the file, not its results"),
    ),
    (
        "AddQDQPairToWeight",
        OnnxRuntime,
        Refused("`format: simulated`, which stores weights as floats"),
    ),
    (
        "QDQKeepRemovableActivations",
        OnnxRuntime,
        Refused("no key: it changes the file, not its results"),
    ),
    (
        "QDQOpTypePerChannelSupportToAxis",
        OnnxRuntime,
        Refused("`per_channel` under `by_operator`"),
    ),
    (
        "UseQDQContribOps",
        OnnxRuntime,
        Refused("no key: Octet decides by the opset"),
    ),
    (
        "EnableSubgraph",
        OnnxRuntime,
        Refused("no key: the schemes without samples quantize all subgraphs"),
    ),
    ("Int32Bias", Quark, Keys(&["quantize_bias"])),
    ("AdjustWeightScaleForInt32Bias", Quark, Keys(&["fit_bias"])),
    ("UseUnsignedReLU", Quark, Keys(&["activations.snap_zero"])),
    ("BiasCorrection", Quark, Keys(&["bias_correction"])),
    ("UseGPTQ", Quark, Switch(|| json!({ "rounding": "gptq" }))),
    (
        "UsePowerOf2Scale",
        Quark,
        Switch(|| {
            json!({
                "activations": { "power_of_two": "nearest" }, "weights": { "power_of_two": "nearest" },
            })
        }),
    ),
    (
        "WeightsOnly",
        Quark,
        Switch(|| json!({ "scheme": "weights" })),
    ),
    ("OpTypesToQuantize", Quark, Keys(&["operators"])),
    (
        "Int16Bias",
        Quark,
        Refused("`quantize_bias`: biases have 32 bits"),
    ),
    (
        "MixedPrecisionTensor",
        Quark,
        Refused("`tensors` with `type`"),
    ),
    (
        "IncludeCLE",
        Quark,
        Refused("`equalize`, which scales channels in another way"),
    ),
    (
        "SimulateDPU",
        Quark,
        Refused("no key: it is a rule of one processor"),
    ),
];
