//! Operator names in the settings: unknown names, and names that are not in the model.

use std::collections::BTreeSet;

use super::names::hint;
use super::{Operators, Settings};
use crate::QuantizeError;
use crate::operator_patterns::find_patterns;
use octet_graph::Model;

/// All operators of ONNX up to opset 27, with those that were removed.
const ONNX: &str = "\
    Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool \
    BatchNormalization Bernoulli BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor \
    BlackmanWindow Cast CastLike CausalConvWithState Ceil Celu CenterCropPad Clip Col2Im Compress Concat \
    ConcatFromSequence Constant ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh CumProd CumSum \
    DFT DeformConv DepthToSpace DequantizeLinear Det Div Dropout DynamicQuantizeLinear Einsum Elu Equal \
    Erf Exp Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool \
    GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HammingWindow \
    HannWindow HardSigmoid HardSwish Hardmax Identity If ImageDecoder InstanceNormalization IsInf IsNaN \
    LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual LinearAttention Log LogSoftmax Loop \
    LpNormalization LpPool MatMul MatMulInteger Max MaxPool MaxRoiPool MaxUnpool Mean \
    MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul Multinomial Neg NegativeLogLikelihoodLoss \
    NonMaxSuppression NonZero Not OneHot Optional OptionalGetElement OptionalHasElement Or PRelu Pad Pow \
    QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN RandomNormal RandomNormalLike \
    RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp \
    ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare RegexFullMatch Relu Reshape \
    Resize ReverseSequence RoiAlign RotaryEmbedding Round STFT Scan Scatter ScatterElements ScatterND \
    Selu SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength \
    SequenceMap Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax SoftmaxCrossEntropyLoss Softplus \
    Softsign SpaceToDepth Split SplitToSequence Sqrt Squeeze StringConcat StringNormalizer StringSplit \
    Sub Sum SwiGLU Swish Tan Tanh TensorScatter TfIdfVectorizer ThresholdedRelu Tile TopK Transpose \
    Trilu Unique Unsqueeze Upsample Where Xor";

/// The operator names in the settings.
fn names_in(settings: &Settings) -> impl Iterator<Item = &String> {
    let listed = match &settings.operators {
        Operators::Only(listed) => listed.as_slice(),
        Operators::All | Operators::OnnxRuntime => &[],
    };
    listed.iter().chain(settings.by_operator.keys())
}

/// The operator names of a model, with those of operator patterns such as Gelu.
fn operators_of(model: &Model) -> BTreeSet<String> {
    let graph = &model.graph;
    let chains = find_patterns(graph);
    let chains = chains.iter().map(|chain| chain.operator.name.to_string());
    let nodes = graph.nodes().iter().map(|node| node.operator());
    nodes.chain(chains).collect()
}

/// Refuses names that are neither operators of ONNX nor of the model.
pub(super) fn refuse_unknown(settings: &Settings, model: &Model) -> Result<(), QuantizeError> {
    let present = operators_of(model);
    // Operators of other domains have `::` in their names and can't be listed.
    let is_known = |name: &str| {
        name.contains("::") || present.contains(name) || ONNX.split(' ').any(|known| known == name)
    };
    match names_in(settings).find(|name| !is_known(name)) {
        Some(name) => Err(QuantizeError::UnknownOperator {
            name: name.clone(),
            hint: hint(
                name,
                present.iter().map(String::as_str).chain(ONNX.split(' ')),
            ),
        }),
        None => Ok(()),
    }
}

/// A note for each operator in the settings that the prepared model does not have. This is not an
/// error: one document serves many models, and preparation folds operators into their neighbours.
pub(crate) fn without_effect(settings: &Settings, model: &Model) -> Vec<String> {
    let present = operators_of(model);
    let absent: BTreeSet<&String> = names_in(settings)
        .filter(|name| !present.contains(*name))
        .collect();
    let note = |name: &String| {
        format!(
            "the settings name the operator `{name}`, which is not in the prepared model; they had no effect"
        )
    };
    absent.into_iter().map(note).collect()
}
