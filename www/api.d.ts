/*
 * Shapes of the JavaScript side alone: files, options of calls, typed arrays. Values that Rust makes
 * or reads are in types.d.ts, which is generated.
 */

import type {
  Bits, CalibrationSummary, Layer, LayerReport, LayerTable, Memory, Metric, OutputKind, Preview, Rounding, SampleSettings, SearchResult, Settings,
  QuantizationSummary, StreamedOutcome, TensorSettings, TuningSummary,
} from './types.js';

/** A file and its path as people know it. */
export interface NamedFile {
  path: string;
  blob: Blob;
}

export type ElementType = NonNullable<TensorSettings['type']>;

/** Tokenized texts: each is a sample of one file. */
export interface TokenizedTexts {
  files: NamedFile[];
  /** Sentences on texts that were left out or cut. */
  notes: string[];
}

/** The decoded inputs of a sample, and the values of the first input where it is float. */
export interface Decoded {
  previews: Preview[];
  first: Float32Array | null;
}

export interface CalibrateOptions {
  /** The calibration method, such as `minmax` or `percentile:99.99`. Default: `auto`. */
  method?: string;
  /**
   * Settings that learn constants from the samples (`finetune`, or the rounding `closed-form`). `quantize` must then get the
   * same settings.
   */
  tuning?: Settings;
  /**
   * Keeps the weights that have learned in the private file system of the page's origin. A later
   * call with the same model, settings and samples goes on from there.
   */
  journal?: boolean;
  /** The rounding of weights that `quantize` will use. `gptq` runs the samples once more. */
  rounding?: Rounding;
  /** The equalization that `quantize` will use. It runs the samples once more. */
  equalize?: Settings['equalize'];
  samples?: SampleSettings;
  /** Stops the calibration. */
  signal?: AbortSignal;
  /** Ends the calibration early and keeps the samples that have run. */
  enough?: AbortSignal;
}

export interface ObserveOptions {
  /** A name for these samples. Statistics of different names add up. */
  source: string;
  /** The complete statistics of the passes before, for settings that need several passes. */
  statistics?: (File | NamedFile)[];
  /** The settings that `quantize` will get. */
  settings?: Settings;
  samples?: SampleSettings;
  signal?: AbortSignal;
}

export interface ForecastOptions {
  method?: string;
  samples?: SampleSettings;
  settings?: Settings;
  signal?: AbortSignal;
}

/**
 * A calibration: `samples` of `given` were run. `tuned`: what the settings `tuning` learned;
 * `resumed`: the number of layers that an earlier run had learned.
 */
export type Calibration = CalibrationSummary & { given: number; tuned: (TuningSummary & { resumed: number }) | null };

export interface Progress {
  /** The stage, in words. */
  stage: string;
  done?: number;
  of?: number;
  /** The unit of `done` and `of`: `bytes`, `samples`, `layers` or `steps`. */
  unit?: string;
  /** The layer that has just learned its constants. */
  layer?: LayerReport;
  /** Layers that a run before had learned, whose journal this one goes on from. */
  resumed?: number;
  /** Ranges of activations so far; absent where nothing changed. */
  ranges?: SeenRange[];
  memory?: Memory;
}

export type SeenRange = [name: string, min: number, max: number];

/** A quantized model. `file` holds the bytes of `model` as a Blob; `ranges` are those of the activations. */
export interface Result {
  model: Uint8Array<ArrayBuffer>;
  file: Blob;
  report: string;
  summary: QuantizationSummary;
  ranges: Record<string, [min: number, max: number]>;
}

/** The format of a file of ranges. */
export type RangeFormat = 'octet' | 'onnxruntime' | 'onnxruntime-flatbuffers' | 'onnxruntime-text' | 'tensorrt' | 'aimet' | 'aimet-0.6.1';

/** A file of ranges, and notes on all that its format cannot hold. */
export interface WrittenRanges {
  file: Blob;
  notes: string[];
}

export type Elements =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

/** Code for a model: the program that runs it, or `samples` for a script that writes samples. */
export type SnippetKind = 'samples' | 'onnxruntime' | 'onnxruntime-web' | 'transformers.js';

/** A value for the input of that name. */
export interface InputTensor {
  name: string;
  shape: number[];
  data: Elements;
}

/** An output of a model. Booleans are bytes. */
export interface OutputTensor {
  name: string;
  element: string;
  shape: number[];
  data: Elements;
}

/** A value that was seen in a run, without its elements. */
export type SeenValue = Pick<OutputTensor, 'name' | 'element' | 'shape'>;

export interface RunOptions {
  /** Measured runs. Default: 10. */
  runs?: number;
  /** Runs before the measured ones. Default: 2. */
  warmUp?: number;
  /** Reading of the sample's files. */
  samples?: SampleSettings;
  /** The kernels of float convolutions. Default: `octet`, which are faster. */
  floatKernels?: 'octet' | 'tract';
  /** Stops the run, and ends the worker where it takes long. */
  signal?: AbortSignal;
  /** Stops the run at its next step, and keeps the worker. */
  gently?: AbortSignal;
}

export type Totals = Omit<LayerTable, 'layers'>;

export interface Run {
  outputs: OutputTensor[];
  layers: Layer[];
  totals: Totals;
}

/** An output of both models for one sample. */
export interface OutputPair {
  kind: OutputKind;
  float: OutputTensor;
  quantized: OutputTensor;
}

/**
 * Answers of both models for one sample. `boxes`: corners, score and class of each confident box.
 * `prototypes`: the output with prototypes of masks; then the coefficients of a box follow its class.
 */
export interface RawAnswers {
  inputs: OutputTensor[];
  outputs: OutputPair[];
  boxes: [Float32Array, Float32Array] | null;
  prototypes: string | null;
}

export interface RankedClass {
  number: number;
  /** The probability, or the score of a model whose scores are between 0 and 1. */
  share: number;
}

/** A box as shares of the input's width and height. `paired`: the other model found it, too. */
export interface FoundBox {
  left: number;
  top: number;
  right: number;
  bottom: number;
  score: number;
  number: number;
  paired: boolean;
  /** The pixels of the thing, of models with masks. */
  mask?: BoxMask;
}

/** A part of a mask of `height` and `width`; `pixels` are 1 where the thing is. */
export interface BoxMask {
  x: number;
  y: number;
  columns: number;
  rows: number;
  pixels: Uint8Array;
  height: number;
  width: number;
}

/** Parts of each answer. `apart`: how far the models are from each other; a larger number is farther. */
interface Answered {
  differs: boolean;
  apart: number;
  /** The values of the row, for models of tables. */
  row?: number[];
}

/** `shares`: they are probabilities, and no other scores. */
export type ClassesAnswer = Answered & { type: 'classes'; of: 'class' | 'token'; shares: boolean; float: RankedClass[]; quantized: RankedClass[] };
/** `height`, `width`: those of the input. */
export type BoxesAnswer = Answered & { type: 'boxes'; height: number; width: number; float: FoundBox[]; quantized: FoundBox[] };
/** A class for each pixel, at a lower resolution. `binary`: there is one class, and the ground. */
export type MaskAnswer = Answered & {
  type: 'mask'; frame: { height: number; width: number }; height: number; width: number; float: Uint16Array; quantized: Uint16Array;
  agreement: number; shares: { number: number; float: number; quantized: number }[]; binary: boolean;
};
export type VectorAnswer = Answered & { type: 'vector'; float: Float32Array; quantized: Float32Array };
export type SoundAnswer = Answered & { type: 'sound'; float: Float32Array; quantized: Float32Array };
/** `pixel`, `plane`: distances of the values of two pixels and of two channels. */
export type PictureAnswer = Answered & { type: 'picture'; height: number; width: number; pixel: number; plane: number; float: Float32Array; quantized: Float32Array };
/** The first values of each output. `why`: why there is nothing better to show. */
export type NumbersAnswer = Answered & {
  type: 'numbers'; why: string;
  outputs: { name: string; shape: number[]; apart: number; float: number[]; quantized: number[]; steps: { same: number; of: number } | null }[];
};
export type Answer = ClassesAnswer | BoxesAnswer | MaskAnswer | VectorAnswer | SoundAnswer | PictureAnswer | NumbersAnswer;
export type SampleAnswer = { sample: string; answer: Answer };

export interface CompareOptions {
  /** Also gives what both models answer for each of the first samples. */
  answers?: boolean;
  /** Reading of the samples. */
  samples?: SampleSettings;
  /** Also measures the error of weights alone and of activations alone; two more runs a sample. */
  split?: boolean;
  /** Compares the layers, too. Without it, a comparison takes a fraction of the time, and the report stays as it is. Default: true. */
  layers?: boolean;
  /** The class number of each sample, by its name. */
  labels?: Record<string, number>;
  signal?: AbortSignal;
  gently?: AbortSignal;
}

/** The choices of a search. */
export interface SearchChoices {
  /** The limit: `accuracy=0.5%`, `kl=0.01`, `sqnr=30`, `bytes=4MB`, `bytes=30%`, `time=60%`, `time=12ms` or `wide=8`. */
  budget: string;
  /** The measure of the error. Default: by the budget, the labels and the outputs. */
  metric?: Metric;
  /** The bits that a weight may get. Default: all. */
  weightBits?: Bits[];
  /** The bits that an activation may get. Default: 8, 16 and float. */
  activationBits?: Bits[];
  /** A file of sensitivities, in place of a measurement. */
  sensitivities?: string;
  /** Measures the times of layers; without it they come from a model of costs. */
  profile?: boolean;
}

export interface SearchOptions extends SearchChoices {
  /** Reading of the samples. */
  samples?: SampleSettings;
  /** The class number of each sample, by its name. */
  labels?: Record<string, number>;
  /** The settings that the search starts from. Types and ranges that they fix stay. */
  settings?: Settings;
  signal?: AbortSignal;
  gently?: AbortSignal;
}

/** The result of a search, and the file of its sensitivities. */
export type SearchOutcome = Omit<SearchResult, 'bits'> & { sensitivities: string };

/** A place for the files of a conversion: a folder that the person chose, or this browser's storage. */
export interface Place {
  folder: FileSystemDirectoryHandle | null;
}

/** The files that a conversion made, the model first. */
export interface StreamedFiles {
  files: { name: string; bytes: number }[];
  outcome: StreamedOutcome;
  memory: Memory;
}

export interface Failure {
  kind: string;
  message: string;
}

/** Wasm memory that the page reads while the worker is busy: control words and a panic's message. */
export interface Shared {
  control: Int32Array;
  panic: Uint8Array;
}

/** A graph for the layout worker: sizes of nodes, and edges between indexes in that list. */
export interface LayoutRequest {
  id: number;
  sizes: [number, number][];
  edges: [number, number][];
}

/** Centres of nodes (x, y), and corners of edges. */
export interface LayoutResult {
  id: number;
  nodes: Float32Array;
  edges: Float32Array[];
  width: number;
  height: number;
}
