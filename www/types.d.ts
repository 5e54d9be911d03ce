/*
 * Values that cross between Rust and JavaScript. Generated from the Rust types by `make contracts`:
 * change the types and their doc comments there. Shapes of JavaScript alone are in api.d.ts.
 */

export * from './api.js';

/** Form of the sound that a model takes. */
export interface AudioForm {
  /** Certainty of the rate. */
  certainty: Certainty;
  /** Number of values, if the model fixes it. */
  length: number | null;
  /** Proposed samples a second. */
  rate: number;
  /** Reason for the rate, as the end of a sentence. */
  why: string;
}

/** Settings for reading sound. */
export interface AudioSettings {
  /** Samples a second that the model takes. */
  rate?: number;
}

/**
 * Treatment of a sample that cannot be read or run.
 * - "skip": The sample is left out with its reason, and the run continues.
 * - "stop": The sample ends the run.
 */
export type BadSamples = 'skip' | 'stop';

/**
 * A number of bits, or float.
 * - "4": 4-bit integers.
 * - "8": 8-bit integers.
 * - "16": 16-bit integers.
 * - "float": 32-bit floats: the tensor is not quantized.
 */
export type Bits = '4' | '8' | '16' | 'float';

/** Settings of block-wise weights for some nodes. Those left out are as for all nodes. */
export interface BlockChoice {
  /** The precision of MatMulNBits. */
  accuracy_level?: number;
  /** Bits of one number. */
  bits?: number;
  /** The method that computes scales and zero points. */
  method?: BlockMethod;
  /** The numbers that share a scale. */
  size?: number;
  /** Zero in the middle. */
  symmetric?: boolean;
}

/**
 * The representation of block-wise weights in the file.
 * - "matmul_nbits": ONNX Runtime's operator com.microsoft::MatMulNBits.
 * - "dequantize": ONNX's own DequantizeLinear of opset 21, for 4 and 8 bits.
 * - "matmul_bnb4": ONNX Runtime's operator com.microsoft::MatMulBnb4: floats of 4 bits, as bitsandbytes has them.
 */
export type BlockForm = 'matmul_nbits' | 'dequantize' | 'matmul_bnb4';

/**
 * The method that computes scale and zero point of a block.
 * - "rtn": From minimum and maximum: ONNX Runtime's integers, bit for bit.
 * - "hqq": Half-quadratic (HQQ): a fractional zero point that fits most numbers and ignores a few
 * outliers.
 * - "search": A search over scales; errors of large numbers count more.
 * - "k_quant": ONNX Runtime's k-quant: scale and zero point by weighted least squares, for several roundings.
 * - "gptq": The scales of `search`, with GPTQ's rounding.
 * - "awq": AWQ: like `rtn`, after the inputs that count most on the samples got larger weights. What is
 * before is divided by the same scales.
 */
export type BlockMethod = 'rtn' | 'hqq' | 'search' | 'k_quant' | 'gptq' | 'awq';

/** The settings of block-wise weights. */
export interface BlockSettings {
  /** The precision of MatMulNBits: 0 runtime's choice, 1 float32, 2 float16, 3 bfloat16, 4 int8. */
  accuracy_level?: number;
  /**
   * The floats between the nodes. `float16` halves what is not in blocks; the integers stay those of
   * the source.
   */
  activations?: FloatActivations;
  /** Bits of one number: 2, 4 or 8. */
  bits?: number;
  /**
   * Quantizes tables that a Gather reads, such as embeddings, as ONNX Runtime's
   * GatherBlockQuantized. A table that is also the model's head is stored once.
   */
  embeddings?: boolean;
  /** The numbers of the form `matmul_bnb4`. */
  float_type?: FloatType;
  /** The representation in the file. */
  form?: BlockForm;
  /** The method that computes scales and zero points. */
  method?: BlockMethod;
  /**
   * Eight bits for the weights that count most, by their roles in the graph: `k_quant_mixed`, or a
   * budget. Layers with `bits` of their own keep them. Default: none.
   */
  mixed?: MixedBits;
  /** The numbers that share a scale: a power of two from 16 to 256. */
  size?: number;
  /**
   * The zero point is the middle of the integers, and the file has no zero points. By default
   * true for every method but `hqq` and `k_quant`, which compute zero points.
   */
  symmetric?: boolean;
}

/** Numbers of confident boxes and of those that match. */
export interface BoxMatches {
  /** Confident boxes of the float model, those with a score of at least 0.25. */
  confident: number;
  /** Confident boxes of the quantized model without such a match in the float model. */
  extra: number;
  /**
   * Confident boxes of the float model with a match: a confident quantized box of the same class
   * with an IoU of at least 0.5.
   */
  found: number;
}

/**
 * The answer on a budget, from samples that neither calibrated nor chose.
 * - "holds": The whole interval is within the budget.
 * - "fails": The whole interval is beyond the budget.
 * - "undecidable": The interval holds the budget: so few samples can't decide.
 * - "met": The budget is one of bytes, time or tensors; it is met by the choice itself.
 */
export type BudgetVerdict = 'holds' | 'fails' | 'undecidable' | 'met';

/** Result of a calibration. */
export interface CalibrationSummary {
  /** Changes that preparation made to the model, a sentence each. */
  prepared: string[];
  /** Number of samples that ran. */
  samples: number;
  /** Samples that were fed and skipped, each with its reason. */
  skipped: Skipped[];
  /** Number of values that have a range. */
  values: number;
}

/**
 * Certainty of a part of a proposal.
 * - "sure": The file states it, or nothing else would run.
 * - "likely": Models like this one usually have it.
 * - "guess": It is common; there is no other hint.
 */
export type Certainty = 'sure' | 'likely' | 'guess';

/** Order of an image's colour channels. */
export type ChannelOrder = 'rgb' | 'bgr';

/** Minimum and maximum of each channel of a weight. */
export interface ChannelRanges {
  /** The channel axis. */
  axis: number;
  /** Maximum of each channel. */
  max: number[];
  /** Minimum of each channel. */
  min: number[];
}

/** A quantized model with its errors. */
export interface Chosen {
  /** Bytes of the file, measured. */
  bytes: number;
  /** Error on the held-out samples. */
  heldError: Estimate;
  /** SQNR in decibels on the held-out samples. */
  heldSqnr: number;
  /** Time of a run over that of the float model. */
  shareOfTime: number;
  /** Tensors with more than 8 bits. */
  wide: number;
}

/** Result of comparing two models on samples. */
export interface Comparison {
  /** The output with the lowest SQNR, among those that can be judged. */
  headline: string | null;
  /** Layers in the order of the float model; empty if they could not be compared. */
  layers: LayerError[];
  /** Reason why only the outputs were compared; `None` if the layers were compared too. */
  layersFailed: string | null;
  /** Errors of the outputs. */
  outputs: OutputError[];
  /** Number of samples. */
  samples: number;
  /** Values of the float model without a counterpart in the quantized one. */
  unpaired: string[];
  /**
   * Advice on whether the quantized model can replace the float model; `None` if no output can be
   * judged.
   */
  verdict: Verdict | null;
  /** Conspicuous findings with their causes. */
  warnings: Warning[];
  /** Titles of the layers that add most error, the worst first. */
  worst: string[];
}

/** A file of external data. */
export interface DataFile {
  /** Size in bytes. */
  bytes: number;
  /** Path that the model states, relative to its own. */
  name: string;
}

/**
 * The advice of a verdict.
 * - "ship": The quantized model is as good as required.
 * - "look": It is between the limits, or the samples are too few to decide.
 * - "dont": It is worse than acceptable.
 */
export type Decision = 'ship' | 'look' | 'dont';

/**
 * SQNR of box coordinates and scores in one output, in decibels. Coordinates are large and would
 * hide the error of the scores.
 */
export interface DetectionErrors {
  /** SQNR of the coordinates. */
  boxes: number;
  /** SQNR of the scores. */
  scores: number;
}

/** Measures derived from a difference. */
export interface DifferenceMetrics {
  /** Cosine of the angle between both values. */
  cosine: number;
  /** Largest absolute difference of two elements. */
  max: number;
  /** Mean absolute difference. */
  mean: number;
  /** SQNR in decibels; 200 if there is no difference. */
  sqnr: number;
}

/** A measured error with its interval. */
export interface Estimate {
  /** Upper end of that interval. */
  high: number;
  /** Lower end of the interval that holds 95 %. */
  low: number;
  /** The measured value. */
  value: number;
}

/**
 * Format of an exported file.
 * - "csv": The layer table as CSV.
 * - "trace": Chrome trace events, for Perfetto.
 * - "speedscope": Profile for speedscope.
 * - "modelExplorer": Node data for Model Explorer.
 * - "html": Self-contained HTML report.
 */
export type Export = 'csv' | 'trace' | 'speedscope' | 'modelExplorer' | 'html';

/**
 * Fine-tuning of the weights, layer by layer, to the values of the float model. The names are those
 * of AMD Quark where they mean the same.
 */
export interface Finetune {
  /** Scales of activations inside of a block are learned too (LSQ). */
  activation_scales?: boolean;
  /** The algorithm. */
  algorithm?: FinetuneAlgorithm;
  /** Samples of a step of a block. Default: 4. */
  batch_size?: number;
  /** First and last exponent of the regulariser. Default: [20, 2]. */
  beta_range?: [number, number];
  /**
   * Layers learn in blocks, such as a residual block, where every operator of a block has a
   * gradient. The other layers learn alone. It takes four samples at least.
   */
  blocks?: boolean;
  /** The most samples that are used. Default: all. */
  data_size?: number;
  /**
   * Steps in which scales and biases of the whole model learn from the float model's outputs,
   * after all layers. Default: 0.
   */
  distillation?: number;
  /**
   * The share of a block's values that are rounded in a step; the others stay float. QDrop's
   * authors take 0.5, for activations of few bits. Default: 1.
   */
  drop_ratio?: number;
  /** The seed of the positions. Default: 1705472343. */
  fixed_seed?: number;
  /** The rate of the optimizer. Default: 0.1, with `adaquant` 1e-5. */
  learning_rate?: number;
  /**
   * Place of the values between two layers. 0: in memory as floats; 1: in memory, float
   * values as halves; 2: the same in a file, on the page in the browser's storage. Default: 1.
   */
  mem_opt_level?: number;
  /** Steps of each layer. Default: 1000, with `adaquant` 3000. */
  num_iterations?: number;
  /** The loss includes the rounding of the layer's output. */
  output_qdq?: boolean;
  /** Positions of a step, drawn from all samples. Default: 256. */
  positions?: number;
  /** Weight of AdaRound's regulariser. Default: 0.01. */
  reg_param?: number;
  /** Learns only the layer that needs most memory, to measure it. */
  select_max_mem_layer?: boolean;
  /** Operators whose weights are learned: `Conv`, `Gemm` or `MatMul`. Default: all of them. */
  target_op_type?: string[];
  /** Biases are learned too. */
  update_bias?: boolean;
  /** Share of the steps without regulariser. Default: 0.2. */
  warm_start?: number;
}

/**
 * An algorithm that learns the rounding of weights.
 * - "adaround": Each weight learns which of its two nearest integers it takes.
 * - "adaquant": Weights and scales are learned, with rounding as the identity in the gradient.
 */
export type FinetuneAlgorithm = 'adaround' | 'adaquant';

/**
 * The floats between the nodes of a model with weights in blocks.
 * - "source": Those of the model.
 * - "float16": Half precision, also for scales and other constants: `q4f16`.
 */
export type FloatActivations = 'source' | 'float16';

/** Nodes of one operator that stay float. */
export interface FloatOperator {
  /** Number of its nodes. */
  count: number;
  /** Name of the operator. */
  operator: string;
  /** Reason why they stay float. */
  reason: string;
}

/**
 * The floats of 4 bits in the form `matmul_bnb4`.
 * - "nf4": Quantiles of a normal distribution.
 * - "fp4": A sign, two bits of exponent and a bit of mantissa.
 */
export type FloatType = 'nf4' | 'fp4';

/** Forecast of a job. */
export interface Forecast {
  /** Memory limit of this platform, if known. */
  limitBytes: number | null;
  /** Part of the peak: activations of the samples that run at once. */
  liveBytes: number;
  /** Multiply-accumulate operations of one run. */
  macs: number;
  /** Time until the quantized model is ready, in milliseconds. */
  ms: number;
  /** Size of the quantized model. */
  outputBytes: number;
  /** Peak of live memory. */
  peakBytes: number;
  /** Stage in which the peak occurs, named as in the report. */
  peakStage: string;
  /** Part of the peak: statistics of all observed tensors. */
  rangeBytes: number;
  /** Reason why the memory does not suffice, and a way out. */
  refusal: string | null;
  /** Time of one sample on one thread, in milliseconds. */
  sampleMs: number;
  /** Number of samples that it assumes. */
  samples: number;
  /** Number of samples that run at once. */
  threads: number;
  /** Part of the peak: the file, and the engine's copies of its weights. */
  weightBytes: number;
}

/**
 * The form of the quantized file.
 * - "qdq": QuantizeLinear and DequantizeLinear around float operators.
 * - "qoperator": Integer operators such as QLinearConv.
 * - "simulated": The values of the quantized model, with weights stored as floats.
 */
export type Format = 'qdq' | 'qoperator' | 'simulated';

/** A graph input or output. */
export interface GraphPort {
  /** Element type. */
  element: string;
  /** Name of the value. */
  name: string;
  /** Shape, such as `1×3×224×224`. Named dimensions show their name, unknown ones `?`. */
  shape: string;
}

/** Nodes of a model in order, and the values between them. */
export interface GraphView {
  /** Inputs of the graph, without initializers. */
  inputs: string[];
  /** Nodes in topological order. */
  nodes: NodeView[];
  /** Outputs of the graph. */
  outputs: string[];
  /** Every value whose type is known. */
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

/** Changes by the user to the settings proposed for the model. */
export interface ImageChanges {
  height?: number;
  layout?: ImageLayout;
  mean?: [number, number, number];
  order?: ChannelOrder;
  pad?: number;
  /** Preset that sets the values first. Other fields override it. */
  preset?: string;
  resize?: ResizeMode;
  scale?: number;
  shorter_side?: number;
  std?: [number, number, number];
  width?: number;
}

/** Order of an image's axes. */
export type ImageLayout = 'nchw' | 'nhwc';

/** Preprocessing of images. The default is that of ImageNet classifiers. */
export interface ImageSettings {
  /** Height, where the model leaves it open. */
  height?: number;
  /** Order of the axes; by default inferred from the input's shape. */
  layout?: ImageLayout;
  /** Value that is subtracted next, by channel in the order of the tensor. */
  mean?: [number, number, number];
  /** Order of the colour channels. */
  order?: ChannelOrder;
  /** Grey value, 0 to 255, of the border that [`ResizeMode::Letterbox`] adds. */
  pad?: number;
  /** Way to bring the image to the input's height and width. */
  resize?: ResizeMode;
  /** Factor for a pixel (0 to 255); applied first. */
  scale?: number;
  /**
   * With [`ResizeMode::Shorter`], the length of the shorter side before the crop. The default is
   * 8/7 of the input's shorter side, which is 256 for 224.
   */
  shorterSide?: number;
  /** Divisor that is applied last, by channel. */
  std?: [number, number, number];
  /** Width, where the model leaves it open. */
  width?: number;
}

/** The error of the whole model on samples that did not teach. */
export interface Judgement {
  /** SQNR with the learned constants. */
  after: number;
  /** SQNR of the outputs in dB, before. */
  before: number;
  /** False if the learned constants were worse, and therefore not taken. */
  taken: boolean;
}

/** One layer of a run: a node of the model with the nodes fused into it, or a conversion. */
export interface Layer {
  /** Number of engine steps in one run. */
  calls: number;
  /** For conversions between number formats: the reason for it. */
  conversion: string | null;
  /**
   * 10⁹ multiply-accumulate operations per second, from the median. `None` without such
   * operations, or for a time below the clock's resolution.
   */
  gmacs: number | null;
  /** For float layers of a quantized model: the reason for float. */
  inFloat: string | null;
  /** Inputs, without constants. */
  inputs: LayerTensor[];
  /** Kernels that ran, in order and without duplicates. */
  kernel: string;
  /** Live memory after it, beyond the memory before the run. */
  liveBytes: number;
  /** Multiply-accumulate operations. */
  macs: number;
  /** Own time in milliseconds over all runs. */
  ms: TimingSummary;
  /** Name of the main node. */
  name: string;
  /** All nodes of the model that the layer executes, in their order. */
  nodes: string[];
  /** Operator of the main node. */
  operator: string;
  /** Outputs that other layers read. */
  outputs: LayerTensor[];
  /** Bytes of its outputs. */
  ownBytes: number;
  /** Peak of live memory while it ran, beyond the memory before the run. */
  peakBytes: number;
  /** Share of the time of all layers, from the means. */
  share: number;
}

/**
 * Error that quantization causes in the output of a layer. If only a Relu or Clip reads the
 * output, both sides are clamped by it first.
 */
export interface LayerError {
  /** Error with all layers up to this one quantized. */
  accumulated: DifferenceMetrics;
  /** SQNR of the added error in decibels with only the activations as integers. */
  activationsOnly: number | null;
  /**
   * Error that this layer adds when its inputs are the float model's values; `None` for data
   * movement.
   */
  added: DifferenceMetrics | null;
  /** Share of the float values outside the range of the integers. */
  clipped: number;
  /** Noise over signal of this layer, as a share of the sum over all layers. */
  harm: number;
  /** Title of the node that produces the value. */
  layer: string;
  /** Largest float value over all samples. */
  max: number;
  /** Smallest float value over all samples. */
  min: number;
  /** Its operator. */
  operator: string;
  /** Range that the integers represent. */
  range: [number, number] | null;
  /** True if the value is rounded to integers. */
  rounded: boolean;
  /** Name of the value. */
  value: string;
  /** SQNR of the added error in decibels with only the weights as integers. */
  weightsOnly: number | null;
}

/** A layer, a block or a model whose constants were learned. */
export interface LayerReport {
  /** Mean squared error there, with the constants that were taken. */
  after: number;
  /** Mean squared error at positions that did not teach, before. */
  before: number;
  /** Mean squared error along the steps of the fine-tuning. */
  curve: number[];
  /** Title of the layer; of a block, those of its first and last layer. */
  layer: string;
  /** Its operator. */
  operator: string;
  /** The kind of part. */
  part: TunedPart;
  /**
   * The proposal that was taken: `given`, `closed form` or `learned`. `not possible` if the
   * part has no gradient, or if there are fewer than four samples.
   */
  taken: string;
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

/** All layers of a run, in the order in which they first run. */
export interface LayerTable {
  /** Nodes of the model that did not run: folded before, or without effect. */
  before: string[];
  /** The rows. */
  layers: Layer[];
  /** Multiply-accumulate operations of all layers. */
  macs: number;
  /** Number of threads that were available. */
  maxThreads: number;
  /** Milliseconds of a run outside all layers, from the means: passing values on, and measuring. */
  outsideMs: number;
  /** Peak of live memory beyond those. */
  peakBytes: number;
  /** Layer at which the peak occurs. */
  peakLayer: string;
  /** Bytes allocated before the run that stay: file, weights and plan. */
  residentBytes: number;
  /** Resolution of the clock in milliseconds. */
  resolutionMs: number;
  /** Number of measured runs. */
  runs: number;
  /** Bytes of the outputs of all layers: the memory it would take to keep everything. */
  sumBytes: number;
  /** Number of threads that most of the measured runs used, the fastest number by trial runs. */
  threads: number;
  /** Time of a whole run in milliseconds. */
  total: TimingSummary;
  /** Number of warm-up runs before them. */
  warmUp: number;
}

/** A tensor that enters or leaves a layer. */
export interface LayerTensor {
  /** Element type. */
  element: string;
  /** Name of the value. */
  name: string;
  /** Shape. Dimensions that depend on the input values are 0. */
  shape: number[];
}

/** Wasm memory as the page shows it, in bytes. */
export interface Memory {
  /** Live memory. */
  live: number;
  /** Size of the wasm memory, which never shrinks. */
  pages: number;
  /** Peak of the live memory. */
  peak: number;
}

/** A calibration method. `ort-entropy` needs at least as many bins as levels, which the pattern does not check. */
export type Method = string;

/**
 * The measure of an error.
 * - "labels": Right answers by labels: the share that the float model gets right and the result wrong, less
 * the share of the opposite.
 * - "agreement": Answers that differ from the float model's.
 * - "kl": Mean KL divergence from the float model's probabilities, in nats.
 * - "sqnr": Power of the difference over power of the output. Shown in decibels as SQNR.
 */
export type Metric = 'labels' | 'agreement' | 'kl' | 'sqnr';

/**
 * The choice of weights that get 8 bits.
 * - "k_quant_mixed": Those of onnxruntime-genai's rule: the head, and the value and down projections of the first
 * and last eighth of the layers and of every third between.
 * - "bytes": As many as fit, by importance, while all constants of the result take at most this many bytes.
 * - "average_bits": As many as fit, by importance, while the weights in blocks take at most this many bits each on
 * average, with scales and zero points.
 */
export type MixedBits = 'k_quant_mixed' | {
  bytes: number;
} | {
  average_bits: number;
};

/** Identity and contents of a model. */
export interface ModelSummary {
  /** True if the model contains quantized operators. */
  alreadyQuantized: boolean;
  /** Form of sound, where sound can be the model's samples. */
  audio: AudioForm | null;
  /** Size of the file in bytes. */
  bytes: number;
  /** Numbers and names of classes, if the metadata state them. */
  classNames: [number, string][];
  /** Attached files of external data. */
  dataFiles: DataFile[];
  /** Operators that stay float, each with its reason. */
  float: FloatOperator[];
  /** Inputs that a sample must provide. */
  inputs: GraphPort[];
  /** Version of the file format. */
  irVersion: number;
  /** Name of the file. */
  name: string;
  /** Number of nodes of each operator, the most frequent first. */
  operators: [string, number][];
  /** Version of the default operator set. */
  opset: number;
  /** Outputs of the graph. */
  outputs: GraphPort[];
  /** Number of elements in all constants: initializers, Constant nodes and those in subgraphs. */
  parameters: number;
  /** Proposed preprocessing of images, where images can be the model's samples. */
  pictures: Proposal | null;
  /** Tool that wrote the file, with its version. */
  producer: string;
  /** Number of nodes whose operator can be quantized. */
  quantizable: number;
  /** True if rows of tables can be the model's samples. */
  rows: boolean;
  /** SHA-256 of the file in hexadecimal. */
  sha256: string;
  /** Task that the model is taken for. */
  task: TaskGuess;
  /** Form of texts, where texts can be the model's samples. */
  texts: TextForm | null;
  /** Warnings to show before calibration. */
  warnings: string[];
}

/**
 * Task of a model.
 * - "classifier": A class for each image.
 * - "detector": Boxes in an image.
 * - "segmenter": A class for each pixel.
 * - "image-to-image": Another image.
 * - "image-encoder": A vector for each image.
 * - "text-encoder": A vector for a text, or for each token.
 * - "text-classifier": A class for a text, or for each token.
 * - "language-model": The next token.
 * - "speech": The words of speech.
 * - "audio": Sound of another kind.
 * - "table": Rows of a table.
 * - "other": None of these, or not known.
 */
export type ModelTask = 'classifier' | 'detector' | 'segmenter' | 'image-to-image' | 'image-encoder' | 'text-encoder' | 'text-classifier' | 'language-model' | 'speech' | 'audio' | 'table' | 'other';

/**
 * A remedy, from the settings or the samples.
 * - "addSamples": Compare on at least this many samples: if they are like these, they decide.
 * - "widerActivations": Give the activations of these layers 16 bits.
 * - "keepFloat": Keep these layers float.
 * - "autoRanges": Choose the range of each tensor by the measured error: the method `auto`.
 * - "widerModel": Give all activations 16 bits.
 */
export type NextStep = {
  /** Number of samples in all. */
  samples: number;
  step: 'addSamples';
} | {
  /** Titles of the layers, the worst first. */
  layers: string[];
  /** Their share of the error. */
  share: number;
  step: 'widerActivations';
} | {
  /** Titles of the layers, the worst first. */
  layers: string[];
  /** Their share of the error. */
  share: number;
  step: 'keepFloat';
} | {
  step: 'autoRanges';
} | {
  step: 'widerModel';
};

/** The decision about a node. */
export interface NodeChoice {
  /** The role for which its weight has more bits than others, in the scheme `blocks`. */
  mixed?: string;
  /** The name of the node. */
  node: string;
  /** The operator of the node. */
  operator: string;
  /** True if the node is quantized. */
  quantized: boolean;
  /** The reason why the node stays float. */
  reason: string | null;
}

/** A node of a [`GraphView`]. */
export interface NodeView {
  /** Input values, followed by the values that its subgraphs capture. */
  inputs: string[];
  /** Name that is shown to people, as in a [`super::QuantizationSummary`]. */
  name: string;
  /** Operator. */
  operator: string;
  /** Output values. */
  outputs: string[];
}

/** The error that quantization causes in an output. */
export interface OutputError {
  /** With labels: the share of samples whose top class is the label, float and quantized. */
  accuracy: [number, number] | null;
  /** If the error is split: the SQNR with only the activations as integers. */
  activationsOnly: number | null;
  /** Difference between float and quantized values. */
  apart: DifferenceMetrics;
  /** For the boxes of a detector: confident boxes that match. */
  boxes: BoxMatches | null;
  /** Kind of the output, which decides its measure. */
  kind: OutputKind;
  /** Name of the output. */
  name: string;
  /** For boxes and scores in one output: the SQNR of each. */
  parts: DetectionErrors | null;
  /** For the tokens of a language model: the change of their probabilities. */
  tokens: TokenErrors | null;
  /** For rows of classes: the share of rows with the same top class. */
  top1: number | null;
  /** The share of rows whose top float class is among the top five quantized classes. */
  top5: number | null;
  /** If the error is split: the SQNR with only the model's weights as integers. */
  weightsOnly: number | null;
}

/**
 * The kind of an output.
 * - "classes": One row of class scores for each sample; judged by top-1.
 * - "steps": A row of class scores at each step of a sequence, as in OCR; judged by top-1 at each step.
 * - "tokens": A score for each token of a vocabulary at each position of a text; judged by top-1 and the KL
 * divergence.
 * - "embedding": A vector that represents the sample; judged by the cosine.
 * - "boxes": Boxes of a detector, with or without scores; judged by matching boxes.
 * - "scores": Scores of boxes that are in another output.
 * - "values": Other floats; judged by SQNR.
 * - "integers": Integers or booleans; not judged.
 * - "passed": Floats that come unchanged from inputs or constants; not judged.
 */
export type OutputKind = 'classes' | 'steps' | 'tokens' | 'embedding' | 'boxes' | 'scores' | 'values' | 'integers' | 'passed';

/**
 * Treatment of activations that were beyond ±65504 on the samples, in half precision.
 * - "float32": Their nodes stay float32.
 * - "clip": They become ±65504 by a Clip node. Their nodes are halves, and the results may change.
 * - "rescale": They are stored divided by a power of two that linear neighbours take up. The results stay. Their
 * nodes stay float32 where no neighbour can take it.
 */
export type Overflow = 'float32' | 'clip' | 'rescale';

/** Statistics of a tensor. */
export interface Preview {
  /** Element type, as numpy names it. */
  element: string;
  /** Name of the model's input. */
  input: string;
  /** Maximum. */
  max: number | null;
  /** Mean. */
  mean: number | null;
  /** Minimum; `None` for an empty tensor, like the next three. */
  min: number | null;
  /** Notes on conversions, as sentences. */
  notes: string[];
  /** Size of each axis. */
  shape: number[];
  /** Standard deviation over all elements. */
  std: number | null;
  /** For the token numbers of a text: its tokens. Empty for other inputs. */
  tokens: TokenPreview[];
}

/** Proposed preprocessing of images for a model, with reasons. */
export interface Proposal {
  /** The settings. */
  image: ImageSettings;
  /** Height and width must be multiples of this number; 1 for any size. */
  multiple: number;
  /** True if the model leaves height or width open. */
  open: boolean;
  /** Preset that their values come from. */
  preset: string;
  /** Reasons for each part. */
  reasons: Reason[];
}

/** A part of a proposal. */
export type ProposalPart = 'size' | 'resize' | 'values' | 'layout';

/**
 * The measure that judges an output.
 * - "accuracyChange": Change of the share of right answers, of samples with labels.
 * - "agreement": Share of answers that equal the float model's.
 * - "boxes": Share of confident boxes, of both models, that match.
 * - "perplexityRatio": Perplexity of the next token, relative to the float model's.
 * - "cosine": Cosine to the float model's vector, mean over the samples.
 * - "sqnr": SQNR in decibels, mean over the samples.
 */
export type QualityMeasure = 'accuracyChange' | 'agreement' | 'boxes' | 'perplexityRatio' | 'cosine' | 'sqnr';

/** Summary of a quantization. */
export interface QuantizationSummary {
  /** Advice on a result that is larger than necessary, a sentence each. */
  advice: string[];
  /** Size of the quantized file in bytes. */
  bytesAfter: number;
  /** Size of the float model in bytes, external data included. */
  bytesBefore: number;
  /** Proposed name for the file. */
  fileName: string;
  /** Number of leading notes that come from mixed precision. */
  guarded: number;
  /** All nodes, each with its choice and, if it stays float, the reason. */
  nodes: NodeChoice[];
  /** Notes for people, a sentence each. */
  notes: string[];
  /**
   * The scheme. A `quantized` node holds integers, or half-precision floats with scheme
   * `float16`.
   */
  scheme: Scheme;
  /** All quantized tensors with their scales, zero points and ranges. */
  tensors: QuantizedTensor[];
}

/** A quantized tensor and its parameters, as the report lists it. */
export interface QuantizedTensor {
  /** The number of consecutive weights that share a scale, for block-wise quantization. */
  block?: number;
  /** The expected gain in dB of the layer's output error by GPTQ; `None` for other tensors. */
  compensated?: number;
  /**
   * The largest change of a channel by bias correction; `None` for a bias that was not
   * corrected.
   */
  corrected?: number;
  /** The integer type. */
  element: string;
  /** The role of the tensor. */
  kind: TensorKind;
  /** The largest real that the integers represent. */
  max: number;
  /** The smallest real that the integers represent. */
  min: number;
  /** The name in the float model. */
  name: string;
  /** The scale; the largest where there are several. */
  scale: number;
  /** The number of scales: 1, or one for each channel. */
  scales: number;
  /** The zero point; the first where there are several. */
  zeroPoint: number;
}

/** Content of a file of ranges, for the page. */
export interface RangeFileSummary {
  /** Notes on all that the format does not say, a sentence each. */
  notes: string[];
  /** Number of tensors with a range. */
  ranges: number;
  /** Settings of single tensors, from formats that have types. */
  tensors: Record<string, TensorSettings>;
  /** The format, for people. */
  title: string;
}

/** Reason for a part of a proposal. */
export interface Reason {
  /** Certainty of the part. */
  certainty: Certainty;
  /** The part. */
  of: ProposalPart;
  /** The hint, as the end of a sentence. */
  why: string;
}

/**
 * Way to bring an image to the height and width of the input.
 * - "shorter": Resizes the shorter side to a given length, then crops the centre.
 * - "exact": Resizes to exactly the input's size; proportions may change.
 * - "letterbox": Fits the image into the input's size and fills the borders with grey.
 * - "none": Keeps the image as it is: it must have the input's size.
 */
export type ResizeMode = 'shorter' | 'exact' | 'letterbox' | 'none';

/**
 * The rounding of weights in the static scheme.
 * - "nearest": Each weight to its nearest integer.
 * - "gptq": GPTQ: later weights of an output correct the error of earlier ones. Needs an extra pass.
 * - "closed-form": GPTQ for inputs that are quantized themselves, with searched scales and fitted gains and biases.
 * Takes the samples again. A layer changes only if samples that did not choose gain.
 */
export type Rounding = 'nearest' | 'gptq' | 'closed-form';

/**
 * The place where the quantized model will run.
 * - "any": Any runtime of ONNX; no rule.
 * - "onnxruntime": ONNX Runtime on the processor.
 * - "onnxruntime-web": ONNX Runtime in a browser, with WebAssembly or WebGPU.
 * - "transformers.js": transformers.js, which also wants certain file names.
 * - "qnn": Qualcomm's neural processors, through ONNX Runtime.
 * - "tensorrt": NVIDIA's TensorRT.
 * - "openvino": Intel's OpenVINO.
 * - "coreml": Apple's Core ML, through ONNX Runtime.
 * - "arm-cmsis": Arm's CMSIS-NN and Ethos-U, by the 8-bit specification of LiteRT.
 */
export type RunTarget = 'any' | 'onnxruntime' | 'onnxruntime-web' | 'transformers.js' | 'qnn' | 'tensorrt' | 'openvino' | 'coreml' | 'arm-cmsis';

/** A sample: its name and the paths of its files. */
export interface SampleRef {
  /** Path of its only file, or of the folder that forms the sample. */
  name: string;
  /** Paths of its files, in order. */
  parts: string[];
}

/** Settings for reading samples. */
export interface SampleSettings {
  /** Reading of sound. */
  audio?: AudioSettings;
  /** Treatment of samples that cannot be read or run. */
  badSamples?: BadSamples;
  /** True for random demo data; the report then says so. */
  demo?: boolean;
  /** Preprocessing of images. */
  image?: ImageSettings;
  /** Samples that were left out before the run, for the report. */
  skipped?: Skipped[];
}

/**
 * The quantization scheme.
 * - "static": Weights and activations, with ranges from calibration samples.
 * - "dynamic": Weights in the file; activations at each inference. Needs no samples.
 * - "weights": Weights only, in 8 bits. Needs no samples.
 * - "blocks": Weights of MatMul and Gemm in blocks of 2, 4 or 8 bits.
 * - "float16": Half-precision floats; no integers. Samples are optional: they show too large values.
 */
export type Scheme = 'static' | 'dynamic' | 'weights' | 'blocks' | 'float16';

/** A point of the curve: a choice of bits for every tensor, with its costs. */
export interface SearchPoint {
  /** Bytes of the file. */
  bytes: number;
  /** Error on the samples that chose, if this point was measured. */
  chosenError: Estimate | null;
  /** SQNR in decibels on those samples. */
  chosenSqnr: number | null;
  /** Number of tensors with 4 bits, 8 bits, 16 bits, and in float. */
  counts: [number, number, number, number];
  /** SQNR in decibels that the sensitivities predict. */
  predictedSqnr: number;
  /** Bytes of the file over those of the float model. */
  shareOfBytes: number;
  /** Time of a run over that of the float model. */
  shareOfTime: number;
}

/** Progress of a search. */
export interface SearchProgress {
  /** Parts of the stage that are done. */
  done: number;
  /** Parts of the stage. */
  of: number;
  /** The name of the stage. */
  stage: string;
}

/** Result of a search. */
export interface SearchResult {
  /** One sentence on the verdict. */
  answer: string;
  /** For each point, the bits of each tensor. */
  bits: Bits[][];
  /** The predicted noise that no choice within the same cost could go below, as SQNR in decibels. */
  boundSqnr: number;
  /** The budget, as it is written on the command line. */
  budget: string;
  /** The chosen model. */
  chosen: Chosen;
  /** The limit on the error, if the budget is one. */
  limit: number | null;
  /** The metric of all errors. */
  metric: Metric;
  /** Index of the chosen point. */
  point: number;
  /** The curve, from the cheapest point to the most accurate. */
  points: SearchPoint[];
  /** Number of samples that chose, and number of held-out ones. */
  samples: [number, number];
  /** About how many held-out samples would decide, if these can't. */
  samplesNeeded: number | null;
  /** The settings of the chosen point. */
  settings: Settings;
  /** Name of each tensor. */
  tensors: string[];
  /** The source of the times. */
  times: TimeSource;
  /** The verdict on the budget. */
  verdict: BudgetVerdict;
  /** The model by the settings without a search, for comparison. */
  withoutSearch: Chosen;
}

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
  /**
   * Fine-tuning of the weights after their rounding: `adaround`, `adaquant`, or a mapping of options.
   * It takes the samples again and some minutes. Default: false.
   */
  finetune?: FinetuneAlgorithm | Finetune;
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
  /**
   * Inputs and outputs stay float32 in half precision: `true`, `false`, or a list of names or patterns
   * of those that do.
   */
  keep_io?: boolean | string[];
  /** The calibration method of activations. Default: `auto`. */
  method?: Method;
  /** The operators that are quantized: `all`, `onnxruntime` (its default list) or a list of types. */
  operators?: 'all' | 'onnxruntime' | string[];
  /** Treatment of activations that were beyond ±65504 on the samples, in half precision. */
  overflow?: Overflow;
  /** Biases become int32. */
  quantize_bias?: boolean;
  /** The rounding of weights. */
  rounding?: Rounding;
  /** The quantization scheme. */
  scheme?: Scheme;
  /**
   * The place where the quantized model will run. Its rules choose the defaults; other settings that
   * contradict them are refused.
   */
  target?: RunTarget;
  /** Settings by tensor name. */
  tensors?: Record<string, TensorSettings>;
  /** The representation of weights. */
  weights?: TensorSettings;
}

/** Content of a calibration's statistics, for the page. */
export interface SharedStatistics {
  /** True if the samples are random. */
  demo: boolean;
  /** Number of complete passes over the samples. */
  passes: number;
  /** Number of samples in all. */
  samples: number;
  /** Number of samples that were left out. */
  skipped: number;
  /** Names of the sources. */
  sources: string[];
}

/** A sample that was left out, and the reason. */
export interface Skipped {
  /** The problem, or a note that the user excluded it. */
  reason: string;
  /** Name of the sample. */
  sample: string;
}

/** Facts about a conversion that is done, for the page. */
export interface StreamedOutcome {
  /** Nodes that stay float, each with its reason. */
  float: NodeChoice[];
  /** Notes for people, a sentence each. */
  notes: string[];
  /** The report as YAML. */
  report: string;
  /** The weights that changed. */
  weights: StreamedWeight[];
}

/** Files, sizes and nodes of a conversion that is planned. */
export interface StreamedPlan {
  /** Bytes that are read, over all passes. */
  bytesToRead: number;
  /** Bytes of the files of weights. */
  bytesToWrite: number;
  /** The files of weights. */
  files: DataFile[];
  /** Reasons why nodes stay float, each with the number of its nodes, the most frequent first. */
  float: [string, number][];
  /** Name of the journal's file. */
  journal: string;
  /** Bytes of memory that the conversion takes at most, beside the graph. */
  memory: number;
  /** Name of the model file. */
  model: string;
  /** Number of nodes. */
  nodes: number;
  /** Notes for people, a sentence each. */
  notes: string[];
  /** Number of nodes that are quantized. */
  quantized: number;
}

/** A weight before and after a conversion. */
export interface StreamedWeight {
  /** Bytes of these constants. */
  bytesAfter: number;
  /** Bytes in the source. */
  bytesBefore: number;
  /** Element types of the constants that are computed from it. */
  form: string;
  /** Its name in the source. */
  name: string;
  /** The shape in the source. */
  shape: number[];
}

/** Task that a model is taken for, with the reason. */
export interface TaskGuess {
  /** Certainty of it. */
  certainty: Certainty;
  /** The task. */
  task: ModelTask;
  /** Hints, as the end of a sentence. */
  why: string;
}

/**
 * The role of a quantized tensor in the model.
 * - "activation": A value computed at inference.
 * - "weight": A constant with one scale, or one for each channel.
 * - "bias": An int32 constant that is added to the accumulators.
 */
export type TensorKind = 'activation' | 'weight' | 'bias';

/** The integer representation of tensors. A key that is absent keeps the value of the wider scope. */
export interface TensorSettings {
  /** The tensor stays float, with all that share its scale. Default: false. Under `tensors` only. */
  float?: boolean;
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

/** Form of the texts that a model takes. */
export interface TextForm {
  /** Number of tokens, if the model fixes it. */
  length: number | null;
}

/** Settings for turning text files into samples. */
export interface TextSettings {
  /** Largest number of texts of a file; they are spread evenly over it. */
  count?: number;
  /**
   * Fields of .jsonl or columns of .csv that hold the text; two make pairs of texts. Empty for
   * the field "text", or else the only one that holds text.
   */
  fields?: string[];
  /**
   * Largest number of tokens of a text; longer texts are cut. The default is that of the
   * tokenizer, at most 512. A model of fixed length has the last word.
   */
  maxLength?: number;
  /** Parts of a .txt file that are texts of their own. */
  unit?: TextUnit;
}

/**
 * Parts of a .txt file that are texts of their own.
 * - "lines": Each line that is not blank.
 * - "paragraphs": Each group of lines between blank ones.
 */
export type TextUnit = 'lines' | 'paragraphs';

/**
 * The source of the times.
 * - "profile": Profiles of the layers on this machine, in milliseconds.
 * - "model": A model of costs by multiplications and values. It has no unit.
 */
export type TimeSource = 'profile' | 'model';

/** Median, percentiles and mean of repeated measurements. */
export interface TimingSummary {
  /**
   * Mean. Means of parts add up to the mean of the whole; medians don't. With a coarse clock the
   * mean of many short times is still right, while their median is a whole number of ticks.
   */
  mean: number;
  /** Median. */
  median: number;
  /** 10th percentile. */
  p10: number;
  /** 90th percentile. */
  p90: number;
}

/** Change of the probabilities of tokens. */
export interface TokenErrors {
  /**
   * Mean KL divergence from the float model's probabilities to the quantized model's, in nats a
   * position.
   */
  kl: number;
  /**
   * Perplexity of the next token on these texts, float and quantized; `None` for a model that
   * sees the whole text, or if no text has two tokens.
   */
  perplexity: [number, number] | null;
  /** Number of positions. */
  positions: number;
}

/** A token as the model receives it. */
export interface TokenPreview {
  /** False for padding, which the attention mask hides. */
  attended: boolean;
  /** Its number. */
  id: number;
  /** The token as the vocabulary spells it; empty for padding, or if it is not known. */
  token: string;
  /** Its type: 1 in the second text of a pair. */
  typeId: number;
}

/** Expected memory of a run. */
export interface TuneForecast {
  /** The layer that needs the most memory. */
  layer: string;
  /** Bytes of its data and of its learning, at most. */
  layerBytes: number;
  /** Number of layers. */
  layers: number;
}

/**
 * The part of a model that a report describes.
 * - "layer": One layer.
 * - "block": A block of layers, which learned together.
 * - "model": The whole model, which learned from the outputs of the float model.
 */
export type TunedPart = 'layer' | 'block' | 'model';

/** Result of a run. */
export interface TuningSummary {
  /** The expected memory of the layer that needs most; `None` without layers. */
  forecast: TuneForecast | null;
  /** The most bytes of the values between two layers. */
  frontierBytes: number;
  /** The whole model; `None` with fewer than four samples. */
  judgement: Judgement | null;
  /** Layers in their order. */
  layers: LayerReport[];
  /** Number of samples. */
  samples: number;
}

/** A sample that cannot be used with the current preprocessing. */
export interface UnusableSample {
  /** True if another image size or way of resizing may solve it. */
  asksForSize: boolean;
  /** The problem and its remedy, as a sentence. */
  reason: string;
  /** Name of the sample. */
  sample: string;
}

/** Distribution of a value's elements in calibration. */
export interface ValueDistribution {
  /** Number of elements, zeros and non-finite ones included. */
  count: number;
  /** Count of each bar. */
  counts: number[];
  /** Minimum and maximum of the finite elements. */
  ends: [number, number];
  /** Lower edge of the first bar. */
  low: number;
  /** Number of elements that are NaN or infinite. */
  odd: number;
  /** Range that each method chooses. */
  ranges: [string, [number, number]][];
  /** Width of a bar. */
  width: number;
  /** Number of zeros. */
  zeros: number;
}

/** A value of a [`GraphView`]. */
export interface ValueView {
  /** True for constants. */
  constant: boolean;
  /** Element type. */
  element: string;
  /** Shape, such as `1×3×224×224`. */
  shape: string;
}

/** The answer to the question whether the quantized model can replace the float model. */
export interface Verdict {
  /** Its advice. */
  decision: Decision;
  /** The interval that holds the true value with a confidence of 95 %; `None` for one sample. */
  interval: [number, number] | null;
  /** The measure of that output. */
  measure: QualityMeasure;
  /** Steps to try next, the best first. */
  next: NextStep[];
  /** The output that decides. */
  output: string;
  /** The reason in words. */
  reason: string;
  /** The value that is not acceptable. */
  refused: number;
  /** The value that is required to ship. */
  required: number;
  /** Number of samples that show this measure. */
  samples: number;
  /** The value that was measured. */
  value: number;
}

/** A conspicuous finding. */
export interface Warning {
  /** Layers to keep in float as a remedy; empty if that does not help. */
  keepFloat: string[];
  /** Kind, for programs. */
  kind: WarningKind;
  /** One sentence: the finding, its place, its cause and its remedy. */
  message: string;
}

/**
 * Kind of a conspicuous finding.
 * - "slower": The quantized model is slower.
 * - "island": A layer stays float between integers.
 * - "sharedScale": Tensors of very different ranges share a scale.
 * - "deadChannels": Some channels have only zero weights.
 * - "inputRange": The samples exceed the calibrated range of an input, or use little of it.
 * - "inputScale": An input looks like an image that was not scaled.
 * - "processor": The answers on an emulated processor.
 */
export type WarningKind = 'slower' | 'island' | 'sharedScale' | 'deadChannels' | 'inputRange' | 'inputScale' | 'processor';
