/*
 * Values that cross between Rust and JavaScript. Generated from the Rust types by `make contracts`:
 * change the types and their doc comments there. Shapes of JavaScript alone are in api.d.ts.
 */

export * from './api.js';

/** The same as figures for a person. */
export interface Apart {
  /** Cosine of the angle between the two. */
  cosine: number;
  /** The largest difference of two elements. */
  max: number;
  /** The mean difference. */
  mean: number;
  /** Ratio of the squares of the signal to those of the difference, in decibels; 200 where there is no difference. */
  sqnr: number;
}

/**
 * What becomes of a sample that can't be read or run.
 * - "skip": It is left out, with its reason, and the run goes on.
 * - "stop": It ends the run.
 */
export type BadSamples = 'skip' | 'stop';

/** What is said of the blocks of some nodes; of what is not, they are as all are. */
export interface BlockChoice {
  /** How exactly MatMulNBits works on activations. */
  accuracy_level?: number;
  /** Bits of one number. */
  bits?: number;
  /** How scales and zero points are found. */
  method?: BlockMethod;
  /** How many numbers share a scale. */
  size?: number;
  /** Zero in the middle. */
  symmetric?: boolean;
}

/**
 * How the file holds weights in blocks.
 * - "matmul_nbits": ONNX Runtime's operator com.microsoft::MatMulNBits.
 * - "dequantize": ONNX's own DequantizeLinear of opset 21, for 4 and 8 bits.
 */
export type BlockForm = 'matmul_nbits' | 'dequantize';

/**
 * How a block's scale and zero point are found.
 * - "rtn": From the smallest and largest number: ONNX Runtime's integers, bit for bit.
 * - "hqq": Half-quadratic: the zero point, no integer, that suits most numbers and lets a few outliers go.
 * - "search": The best of many scales, errors of large numbers counting more.
 * - "gptq": With those scales, rounded so that the errors of a column make up for one another.
 */
export type BlockMethod = 'rtn' | 'hqq' | 'search' | 'gptq';

/** How weights are quantized in blocks. */
export interface BlockSettings {
  /** How exactly MatMulNBits works on activations: 0 as it likes, 1 float32, 2 float16, 3 bfloat16, 4 int8. */
  accuracy_level?: number;
  /** Bits of one number: 2, 4 or 8. */
  bits?: number;
  /** How the file holds them. */
  form?: BlockForm;
  /** How scales and zero points are found. */
  method?: BlockMethod;
  /** How many numbers share a scale: a power of two from 16 to 256. */
  size?: number;
  /**
   * Zero in the middle, and no zero points in the file; where nothing is said, with every method but the half-quadratic,
   * which looks for zero points.
   */
  symmetric?: boolean;
}

/** How many confident boxes of the float model the quantized one finds again. */
export interface BoxMatches {
  /** Boxes of the float model with a score of at least a quarter. */
  confident: number;
  /** Confident boxes of the quantized model that overlap none of the float model's of their class so. */
  extra: number;
  /** Those of them that a confident box of the quantized model overlaps by half or more, of the same class. */
  found: number;
}

/** What a calibration saw. */
export interface CalibrationSummary {
  /** What `prepare` changed, a sentence each. */
  prepared: string[];
  /** How many samples were run. */
  samples: number;
  /** The samples that were fed and left out, each with its reason. */
  skipped: Skipped[];
  /** How many values have a range. */
  values: number;
}

/** A model's identity and contents. */
export interface Card {
  /** Whether the model holds quantized operators already. */
  alreadyQuantized: boolean;
  /** Its size. */
  bytes: number;
  /** The files beside it that hold its weights, once they are here. */
  dataFiles: DataFile[];
  /** Operators that stay float, with the reason. */
  float: FloatOperator[];
  /** What is fed. */
  inputs: Port[];
  /** Version of the file format. */
  irVersion: number;
  /** The file's name. */
  name: string;
  /** How many nodes of each operator, the most first. */
  operators: [string, number][];
  /** Version of the default operator set. */
  opset: number;
  /** What comes out. */
  outputs: Port[];
  /** Elements of all constants together: initializers, Constant nodes, and those of the graphs that nodes hold. */
  parameters: number;
  /** How pictures are probably to be read for it, where they can be its samples. */
  pictures: Proposal | null;
  /** The tool that wrote it, with its version. */
  producer: string;
  /** How many nodes have an operator that can be int8. */
  quantizable: number;
  /** Its checksum, in hexadecimal. */
  sha256: string;
  /** What a person should know before going on. */
  warnings: string[];
}

/**
 * How sure a part of a proposal is.
 * - "sure": The file says it, or nothing else would run.
 * - "likely": Models like this one mostly have it.
 * - "guess": It is common, no more.
 */
export type Certainty = 'sure' | 'likely' | 'guess';

/** The least and the greatest value of each channel of a weight. */
export interface Channels {
  /** The axis along which the channels lie. */
  axis: number;
  /** The greatest, by channel. */
  max: number[];
  /** The least value, by channel. */
  min: number[];
}

/** Two models on some samples. */
export interface Comparison {
  /** The output that is worst off, among those that tell anything. */
  headline: string | null;
  /** The layers in the order of the float model; none where they could not be compared. */
  layers: LayerError[];
  /** Why the layers could not be compared, while the outputs were; `None` where they were. */
  layersFailed: string | null;
  /** The outputs. */
  outputs: OutputError[];
  /** How many samples were run. */
  samples: number;
  /** Values of the float model that the quantized one has no counterpart of. */
  unpaired: string[];
  /** What stands out, with its cause. */
  warnings: Warning[];
  /** The names of the layers that add most, the worst first. */
  worst: string[];
}

/** A file beside the model that holds weights. */
export interface DataFile {
  /** Its size. */
  bytes: number;
  /** Where the model says that it is. */
  name: string;
}

/** The SQNR of an output's parts, in decibels: places are large numbers, and hide what scores have lost. */
export interface DetectionErrors {
  /** Of the places. */
  boxes: number;
  /** Of the scores. */
  scores: number;
}

/** What calibration saw of a value. */
export interface Distribution {
  /** How many values were seen; of these, zeros and what is no number. */
  count: number;
  /** The bars. */
  counts: number[];
  /** The least and the greatest finite value. */
  ends: [number, number];
  /** Where the first bar begins. */
  low: number;
  /** How many were NaN or infinite. */
  odd: number;
  /** The range each method would choose. */
  ranges: [string, [number, number]][];
  /** How wide a bar is. */
  width: number;
  /** How many were zero. */
  zeros: number;
}

/**
 * A kind of file.
 * - "csv": The table of layers.
 * - "trace": Chrome trace events, for Perfetto.
 * - "speedscope": speedscope's own.
 * - "modelExplorer": Node data for Model Explorer.
 * - "html": A page that stands by itself.
 */
export type Export = 'csv' | 'trace' | 'speedscope' | 'modelExplorer' | 'html';

/** Nodes of one operator that stay float. */
export interface FloatOperator {
  /** How many nodes. */
  count: number;
  /** The operator. */
  operator: string;
  /** Why they stay float. */
  reason: string;
}

/** What will be taken. */
export interface Forecast {
  /** What can be allocated here at most, where that is known. */
  limitBytes: number | null;
  /** Of the peak: activations of the samples that run at once. */
  liveBytes: number;
  /** Multiplications with an addition in one run. */
  macs: number;
  /** The time until the quantized model is there, in milliseconds. */
  ms: number;
  /** The size of the quantized model. */
  outputBytes: number;
  /** The most that will be allocated at once. */
  peakBytes: number;
  /** The stage in which that is, as in the report. */
  peakStage: string;
  /** Of the peak: what is remembered of every tensor. */
  rangeBytes: number;
  /** Why it can't be done here, and a way that can. */
  refusal: string | null;
  /** Of it for each sample, on one thread. */
  sampleMs: number;
  /** How many samples it is told for. */
  samples: number;
  /** How many run at once. */
  threads: number;
  /** Of the peak: the file, and what the engine makes of its weights. */
  weightBytes: number;
}

/**
 * The form of the quantized file.
 * - "qdq": QuantizeLinear and DequantizeLinear around float operators.
 * - "qoperator": Integer operators such as QLinearConv.
 * - "simulated": The values of the quantized model, with weights stored as floats.
 */
export type Format = 'qdq' | 'qoperator' | 'simulated';

/** The nodes of a model in order and the values between them. */
export interface GraphView {
  /** Values that are fed. */
  inputs: string[];
  /** Each after those whose values it uses. */
  nodes: NodeView[];
  /** Values that come out. */
  outputs: string[];
  /** Of every value whose type is known. */
  values: Record<string, ValueView>;
}

/** The rules of mixed precision. */
export interface GuardSettings {
  /** The largest growth of the weights' bytes, as a fraction. */
  budget?: number;
  /** An activation with fewer than six integers for half of its values gets 16 bits. */
  finer?: boolean;
  /** An activation stays float where 16 bits are not enough or not allowed. */
  float?: boolean;
  /** With the method `auto`, the logits at the end of a model get 16 bits. */
  outputs?: boolean;
  /** A range whose expected error is twice the least one is widened. */
  ranges?: boolean;
  /** A weight whose own error is ten times the median of all weights gets 16 bits. */
  weights?: boolean;
}

/** What a person says of how pictures are read, over what is proposed for the model. */
export interface ImageChanges {
  height?: number;
  layout?: Layout;
  mean?: [number, number, number];
  order?: Order;
  pad?: number;
  /** The preset whose values are taken; what stands beside it counts over it. */
  preset?: string;
  resize?: Resize;
  scale?: number;
  shorter_side?: number;
  std?: [number, number, number];
  width?: number;
}

/** How a picture becomes a tensor. The default is what ImageNet classifiers are trained with. */
export interface ImageSettings {
  /** The height where the model leaves it open. */
  height?: number;
  /** The order of axes; by default told from the input's shape. */
  layout?: Layout;
  /** What is then taken off, by channel in the order of the tensor. */
  mean?: [number, number, number];
  /** The order of colours. */
  order?: Order;
  /** The grey, 0 to 255, that [`Resize::Letterbox`] puts around a picture. */
  pad?: number;
  /** How the picture gets the input's height and width. */
  resize?: Resize;
  /** What a pixel (0 to 255) is multiplied with first. */
  scale?: number;
  /**
   * With [`Resize::Shorter`], what the shorter side becomes before the crop; by default 8/7 of
   * the input's, which is 256 for 224.
   */
  shorterSide?: number;
  /** What is then divided by. */
  std?: [number, number, number];
  /** The width where the model leaves it open. */
  width?: number;
}

/**
 * What a quantized tensor is in the model.
 * - "activation": Made while the model runs.
 * - "weight": A constant with as many scales as it has channels, or one.
 * - "bias": A 32-bit constant that is added to products.
 */
export type Kind = 'activation' | 'weight' | 'bias';

/** One layer of a run: a node of the model with what was fused into it, or a conversion. */
export interface Layer {
  /** How many steps of the engine it took in one run. */
  calls: number;
  /** Where it only changes the form of numbers (integers to floats and back): what makes that necessary. */
  conversion: string | null;
  /**
   * Billions of multiplications with an addition in a second, from the median; `None` where it does none, or where
   * the time is below what the clock can tell.
   */
  gmacs: number | null;
  /** Where it runs in float in a model of integers: why. */
  inFloat: string | null;
  /** What it reads, without constants. */
  inputs: LayerTensor[];
  /** The engine's code for it: what ran, in order, each once. */
  kernel: string;
  /** Bytes live after it, beyond what was there before the run. */
  liveBytes: number;
  /** Multiplications with an addition. */
  macs: number;
  /** Its own time in milliseconds, over the runs. */
  ms: TimingSummary;
  /** The name of the node that does the work. */
  name: string;
  /** All nodes of the model that it stands for, in their order. */
  nodes: string[];
  /** Its operator. */
  operator: string;
  /** What it makes for others. */
  outputs: LayerTensor[];
  /** Bytes of what it makes. */
  ownBytes: number;
  /** The most bytes live while it ran, beyond what was there before the run. */
  peakBytes: number;
  /** Its share of the time of all layers, from their means. */
  share: number;
}

/** What quantizing did to the value a layer makes; where a Relu or Clip alone reads that, to what it lets pass of it. */
export interface LayerError {
  /** The error that all layers up to here have brought. */
  accumulated: Apart;
  /** The same with only the activations as integers. */
  activationsOnly: number | null;
  /**
   * The error that this layer brings when it is fed with the float model's values; `None` where it only moves what
   * others made.
   */
  added: Apart | null;
  /** The share of the float values beyond what the integers can hold. */
  clipped: number;
  /** This layer's share of what all layers add: noise over signal. */
  harm: number;
  /** The node that makes the value. */
  layer: string;
  /** The greatest. */
  max: number;
  /** The least float value seen. */
  min: number;
  /** Its operator. */
  operator: string;
  /** The reals that the integers can hold. */
  range: [number, number] | null;
  /** Whether it is rounded. */
  rounded: boolean;
  /** The value. */
  value: string;
  /** The same with only the weights as integers, in decibels of SQNR. */
  weightsOnly: number | null;
}

/** Settings of some nodes. A key that is absent keeps the value of the wider scope. */
export interface LayerSettings {
  /** The representation of the outputs. */
  activations?: TensorSettings;
  /**
   * Operators that only move data, such as MaxPool, are quantized after a float input too.
   * Default: false.
   */
  always?: boolean;
  /** The blocks of the weights, in the scheme `blocks`. */
  blocks?: BlockChoice;
  /**
   * Products of two activations stay float; products with a constant are quantized.
   * Default: false.
   */
  constant_only?: boolean;
  /** The nodes stay float. Default: false. */
  float?: boolean;
  /** The outputs stay float, though the inputs are quantized. Default: false. */
  float_output?: boolean;
  /** The representation of the weights. */
  weights?: TensorSettings;
}

/** All layers of a run, in the order they first run. */
export interface LayerTable {
  /** Nodes of the model that did not run: computed before, or without effect. */
  before: string[];
  /** The rows. */
  layers: Layer[];
  /** Multiplications with an addition, of all layers. */
  macs: number;
  /** Milliseconds of a run spent outside all layers, from the means: handing values on, and measuring. */
  outsideMs: number;
  /** The most bytes live at once beyond those. */
  peakBytes: number;
  /** The layer where that was. */
  peakLayer: string;
  /** Bytes allocated before the run, which stay: the file, the weights, the plan. */
  residentBytes: number;
  /** The smallest step of the clock, in milliseconds. */
  resolutionMs: number;
  /** How many runs were measured. */
  runs: number;
  /** What all layers make, together: what it would take to keep everything. */
  sumBytes: number;
  /** The time of a whole run in milliseconds. */
  total: TimingSummary;
  /** How many ran before, unmeasured. */
  warmUp: number;
}

/** A tensor at the edge of a layer. */
export interface LayerTensor {
  /** Its element type. */
  element: string;
  /** The value's name in the model. */
  name: string;
  /** Its shape; sizes that depend on the values fed are 0. */
  shape: number[];
}

/** The order of a picture's axes. */
export type Layout = 'nchw' | 'nhwc';

/** Wasm memory as the page shows it, in bytes. */
export interface Memory {
  /** Allocated and not freed. */
  live: number;
  /** The size of the wasm memory. It never shrinks. */
  pages: number;
  /** The largest `live` so far. */
  peak: number;
}

/** A calibration method. `ort-entropy` needs at least as many bins as levels, which the pattern does not check. */
export type Method = string;

/** A sample that can't be used as samples are read now. */
export interface Misfit {
  /** Whether another size or way of resizing may mend it. */
  asksForSize: boolean;
  /** What is wrong with it, and what to do. */
  reason: string;
  /** Its name. */
  sample: string;
}

/** What became of a node. */
export interface NodeChoice {
  /** Its name. */
  node: string;
  /** Its operator. */
  operator: string;
  /** Whether it works on integers now. */
  quantized: boolean;
  /** Where it does not: why. */
  reason: string | null;
}

/** A node of a [`GraphView`]. */
export interface NodeView {
  /** The values it uses, those its subgraphs use after its own. */
  inputs: string[];
  /** What a person knows it by; the same as in a summary. */
  name: string;
  /** Its operator. */
  operator: string;
  /** The values it makes. */
  outputs: string[];
}

/** The order of a picture's colours. */
export type Order = 'rgb' | 'bgr';

/** What quantizing did to an output. */
export interface OutputError {
  /** With labels: the share of samples whose greatest class is the label, float and quantized. */
  accuracy: [number, number] | null;
  /** The same with all activations. */
  activationsOnly: number | null;
  /** How far it is apart. */
  apart: Apart;
  /** Of a detector's boxes: those that are found again. */
  boxes: BoxMatches | null;
  /** What it is to be judged by. */
  kind: OutputKind;
  /** Its name. */
  name: string;
  /** Where boxes and scores are in one output: the SQNR of each. */
  parts: DetectionErrors | null;
  /** Of outputs with rows of classes: the share of rows whose greatest class is the same. */
  top1: number | null;
  /** The share of rows whose greatest float class is among the five greatest quantized ones. */
  top5: number | null;
  /** Where the error was split: the SQNR with all weights of the model as integers, and nothing else. */
  weightsOnly: number | null;
}

/**
 * What an output is to be judged by.
 * - "classes": A row of classes a sample: by the greatest.
 * - "steps": A row of classes at each step of a sequence, as readers of text have: by the greatest of each.
 * - "embedding": A vector that stands for the sample: by the cosine.
 * - "boxes": Boxes of a detector, with their scores or without: by those that are found again.
 * - "scores": Scores of boxes that are in another output.
 * - "values": Other floats: by the ratio of signal to noise.
 * - "integers": Integers or booleans: by nothing.
 * - "passed": Floats that come from the inputs unchanged, or from constants: by nothing.
 */
export type OutputKind = 'classes' | 'steps' | 'embedding' | 'boxes' | 'scores' | 'values' | 'integers' | 'passed';

/** A part of a proposal. */
export type Part = 'size' | 'resize' | 'values' | 'layout';

/** An input or output. */
export interface Port {
  /** Its element type. */
  element: string;
  /** Its name. */
  name: string;
  /** Its shape, such as `1×3×224×224`; named and unknown sizes stand as in the file. */
  shape: string;
}

/** A tensor in a few numbers. */
export interface Preview {
  /** The element type, as numpy names it. */
  element: string;
  /** The model's input it is for. */
  input: string;
  /** The largest value. */
  max: number | null;
  /** The mean. */
  mean: number | null;
  /** The smallest value; `None` where there is no value, as for the next three. */
  min: number | null;
  /** What was converted on the way, in sentences. */
  notes: string[];
  /** The size of each axis. */
  shape: number[];
  /** The standard deviation, of the values as a whole. */
  std: number | null;
}

/** How pictures are probably to be read for a model, and why. */
export interface Proposal {
  /** The settings. */
  image: ImageSettings;
  /** Height and width must be multiples of this; 1 where any size is taken. */
  multiple: number;
  /** Whether the model leaves height or width open. */
  open: boolean;
  /** The preset whose values they have. */
  preset: string;
  /** What speaks for each part. */
  reasons: Reason[];
}

/** A tensor that is quantized and how. */
export interface QuantizedTensor {
  /** How many neighbours share a scale, where it has one for each block. */
  block?: number;
  /**
   * Of a weight whose errors were made to make up for one another: by how many decibels the error of what it adds to is
   * expected to be less.
   */
  compensated?: number;
  /** Of a bias that was corrected for what rounding the weights adds: the most that any channel was changed by. */
  corrected?: number;
  /** Its integer type. */
  element: string;
  /** What it is. */
  kind: Kind;
  /** The largest real number it can hold. */
  max: number;
  /** The smallest real number it can hold. */
  min: number;
  /** Its name in the float model. */
  name: string;
  /** The scale, or the largest of them. */
  scale: number;
  /** How many scales it has: 1, or one a channel. */
  scales: number;
  /** The zero point. */
  zeroPoint: number;
}

/** What speaks for a part of a proposal. */
export interface Reason {
  /** How sure it is. */
  certainty: Certainty;
  /** The part. */
  of: Part;
  /** The clue, as the end of a sentence. */
  why: string;
}

/**
 * How a picture gets the height and width of the input.
 * - "shorter": The shorter side to a given length, then a crop from the centre.
 * - "exact": To exactly the input's size, whatever that does to the proportions.
 * - "letterbox": As large as fits, the rest filled with grey on both sides.
 * - "none": Not at all: the picture must have the size.
 */
export type Resize = 'shorter' | 'exact' | 'letterbox' | 'none';

/**
 * The rounding of weights in the static scheme.
 * - "nearest": Each weight to its nearest integer.
 * - "gptq": GPTQ: later weights of an output correct the error of earlier ones. Needs an extra pass.
 */
export type Rounding = 'nearest' | 'gptq';

/** One sample: its name and the paths of its files. */
export interface SampleRef {
  /** The path of its one file, or of the folder that is the sample. */
  name: string;
  /** The given paths that belong to it, in order. */
  parts: string[];
}

/** How samples are to be read. */
export interface SampleSettings {
  /** What becomes of a sample that can't be read or run. */
  badSamples?: BadSamples;
  /** Whether the samples are random demo data; then the report says so. */
  demo?: boolean;
  /** How a picture becomes a tensor. */
  image?: ImageSettings;
  /** Samples that are left out before a run, for the report. */
  skipped?: Skipped[];
}

/**
 * The quantization scheme.
 * - "static": Weights and activations, with ranges from calibration samples.
 * - "dynamic": Weights in the file; activations at each inference. Needs no samples.
 * - "weights": Weights only, in 8 bits. Needs no samples.
 * - "blocks": Weights of MatMul and Gemm in blocks of 2, 4 or 8 bits.
 * - "float16": Half-precision floats; no integers. Needs no samples.
 */
export type Scheme = 'static' | 'dynamic' | 'weights' | 'blocks' | 'float16';

/** Settings that quantize a model. */
export interface Settings {
  /** The representation of activations. */
  activations?: TensorSettings;
  /**
   * Biases absorb the mean error that weight rounding causes. Default: true with the method
   * `auto`, else false.
   */
  bias_correction?: boolean;
  /** The blocks of weights in the scheme `blocks`. */
  blocks?: BlockSettings;
  /** Settings by scope or pattern of node names. Of two that match, the longer wins. */
  by_name?: Record<string, LayerSettings>;
  /** Settings by node name. */
  by_node?: Record<string, LayerSettings>;
  /** Settings by operator type. */
  by_operator?: Record<string, LayerSettings>;
  /**
   * Equalization of channel ranges before quantization, with an extra pass over the samples.
   * `true` is the strength 0.5. At 0 only the weights count; at 1 all channels of an activation
   * get one range. Default: false.
   */
  equalize?: boolean | number;
  /**
   * The largest number of early activations that get 16 bits where 8 bits cost much. Default: with
   * the method `auto` a quarter of all tensors and at most 12, else 0.
   */
  fine_first?: number;
  /** The scale of a weight grows where its bias would overflow int32. */
  fit_bias?: boolean;
  /** Nodes that stay float: names, scopes, or patterns with `*`. */
  float?: string[];
  /** The form of the quantized file. */
  format?: Format;
  /**
   * Mixed precision: tensors that 8 bits would damage get a wider range, 16 bits, or stay float.
   * `true`, `false`, or one switch for each rule.
   */
  guard?: boolean | GuardSettings;
  /**
   * Preprocessing of images. A key overrides the value that is proposed for the model. It affects
   * the samples only.
   */
  images?: ImageChanges;
  /** Inputs and outputs stay float32 in the scheme `float16`. */
  keep_io?: boolean;
  /** The calibration method of activations. Default: `auto`. */
  method?: Method;
  /** The operators that are quantized: `all`, `onnxruntime` (its default list) or a list of types. */
  operators?: 'all' | 'onnxruntime' | string[];
  /** Biases become int32. */
  quantize_bias?: boolean;
  /** The rounding of weights. */
  rounding?: Rounding;
  /** The quantization scheme. */
  scheme?: Scheme;
  /** Settings by tensor name. */
  tensors?: Record<string, TensorSettings>;
  /** The representation of weights. */
  weights?: TensorSettings;
}

/** A sample that is left out, and why. */
export interface Skipped {
  /** What is wrong with it, or who wanted it. */
  reason: string;
  /** Its name. */
  sample: string;
}

/** What was done to the model. */
export interface Summary {
  /** What should be chosen otherwise, as the result is larger than it need be: a sentence each. */
  advice: string[];
  /** Size of the quantized file. */
  bytesAfter: number;
  /** Size of the float file, with the files beside it. */
  bytesBefore: number;
  /** The name that the file should have. */
  fileName: string;
  /** So many of the notes, the first, tell of a tensor that the guard kept from being ruined. */
  guarded: number;
  /** Each node and whether it is quantized; where not, why. */
  nodes: NodeChoice[];
  /** What a person should know of it: a sentence each. */
  notes: string[];
  /** What became integers, or halves where it is `float16`: what `quantized` means of a node. */
  scheme: Scheme;
  /** Each tensor that is quantized, with its scale, zero point and range. */
  tensors: QuantizedTensor[];
}

/** The integer representation of tensors. A key that is absent keeps the value of the wider scope. */
export interface TensorSettings {
  /**
   * The calibration method of an activation. A weight takes `mse` only. Default: the method of the
   * document for activations, the full range for weights.
   */
  method?: Method;
  /** The least width of the range, for hardware with a smallest scale. Default: 0. */
  minimum_range?: number;
  /** One scale for each output channel of a weight. Default: true. Weights only. */
  per_channel?: boolean;
  /**
   * Only powers of two as scales, for hardware that shifts. `true`: the smallest that clips
   * nothing. `nearest`: the nearest, which can clip 30 % of the range (AMD Quark). Default: false.
   */
  power_of_two?: true | false | 'nearest';
  /** The range `[min, max]`, in place of a calibrated one. Under `tensors` only. */
  range?: [number, number];
  /** One bit less, for processors whose 8-bit products saturate. Default: false. */
  reduce_range?: boolean;
  /** The scale. Under `tensors` only. */
  scale?: number;
  /**
   * The zero point of an unsigned type is 0, or the middle where the range has negative values.
   * Default: false.
   */
  snap_zero?: boolean;
  /** Zero maps to the middle of the integer range. Default: true for weights of a signed type. */
  symmetric?: boolean;
  /** The integer type. Default: `u8` for activations, `i8` for weights. */
  type?: 'u8' | 'i8' | 'u16' | 'i16' | 'u4' | 'i4';
  /** The zero point of `scale`. Default: 0. Under `tensors` only. */
  zero_point?: number;
}

/** How repeated measurements of one thing are spread. */
export interface TimingSummary {
  /**
   * Their mean. Means of parts add up to the mean of the whole, medians don't; and where the clock is coarse, the
   * mean of many short times is still right, while their median is a whole number of ticks.
   */
  mean: number;
  /** Half of them are below. */
  median: number;
  /** A tenth of them is below. */
  p10: number;
  /** Nine tenths are below. */
  p90: number;
}

/** A value of a [`GraphView`]. */
export interface ValueView {
  /** Whether it is a constant. */
  constant: boolean;
  /** Its element type. */
  element: string;
  /** Its shape, such as `1×3×224×224`. */
  shape: string;
}

/** Something to look at. */
export interface Warning {
  /** The layers that mend it when they are kept in float; empty where that does not help. */
  keepFloat: string[];
  /** A word to act on: `slower`, `island`, `sharedScale`, `deadChannels`, `inputRange`, `inputScale`. */
  kind: string;
  /** What, where, why and what to do, in a sentence. */
  message: string;
}
