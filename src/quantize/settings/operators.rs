//! Names of operators in the settings: those nobody knows, and those that the model doesn't have.

use std::collections::BTreeSet;

use super::names::hint;
use super::{Operators, Settings};
use crate::graph::Model;
use crate::quantize::QuantizeError;
use crate::quantize::composed::composed;

/// Every operator that ONNX has or had, up to operator set 27.
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

/// The operators that the settings name.
fn named(settings: &Settings) -> impl Iterator<Item = &String> {
    let listed = match &settings.operators {
        Operators::Only(listed) => listed.as_slice(),
        Operators::All | Operators::OnnxRuntime => &[],
    };
    listed.iter().chain(settings.by_operator.keys())
}

/// The operators of a model, as settings name them; those that are written as chains among them.
fn of(model: &Model) -> BTreeSet<String> {
    let graph = &model.graph;
    let chains = composed(graph, &graph.uses());
    let chains = chains.iter().map(|chain| chain.operator.to_string());
    let nodes = graph.nodes.iter().map(|node| node.operator());
    nodes.chain(chains).collect()
}

/// Refuses what is no operator of ONNX, nor of the model, and can only be misspelt.
pub(super) fn refuse_unknown(settings: &Settings, model: &Model) -> Result<(), QuantizeError> {
    let there = of(model);
    // Those of other domains can't be listed: their names have `::` in them.
    let is_known = |name: &str| {
        name.contains("::") || there.contains(name) || ONNX.split(' ').any(|known| known == name)
    };
    match named(settings).find(|name| !is_known(name)) {
        Some(name) => Err(QuantizeError::UnknownOperator {
            name: name.clone(),
            hint: hint(
                name,
                there.iter().map(String::as_str).chain(ONNX.split(' ')),
            ),
        }),
        None => Ok(()),
    }
}

/// What the settings say of operators that are not in the prepared model: a sentence each. No error, as the same
/// settings serve many models, and preparing may have folded the operator into its neighbours.
pub(in crate::quantize) fn without_effect(settings: &Settings, model: &Model) -> Vec<String> {
    let there = of(model);
    let absent: BTreeSet<&String> = named(settings)
        .filter(|name| !there.contains(*name))
        .collect();
    let said = |name: &String| {
        format!(
            "the settings name the operator `{name}`, which the prepared model doesn't have: it had no effect"
        )
    };
    absent.into_iter().map(said).collect()
}
