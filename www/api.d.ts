/*
 * Shapes of the JavaScript side alone: files, options of calls, typed arrays. Values that Rust makes
 * or reads are in types.d.ts, which is generated.
 */

import type {
  Bits, CalibrationSummary, Layer, LayerReport, LayerTable, Memory, Metric, Preview, Rounding, SampleSettings, SearchResult, Settings,
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

export interface ForecastOptions {
  method?: string;
  samples?: SampleSettings;
  settings?: Settings;
  signal?: AbortSignal;
}

/** A calibration: `samples` of `given` were run. `tuned`: what the settings `tuning` learned. */
export type Calibration = CalibrationSummary & { given: number; tuned: TuningSummary | null };

export interface Progress {
  /** The stage, in words. */
  stage: string;
  done?: number;
  of?: number;
  /** The unit of `done` and `of`: `bytes`, `samples`, `layers` or `steps`. */
  unit?: string;
  /** The layer that has just learned its constants. */
  layer?: LayerReport;
  /** Ranges of activations so far; absent where nothing changed. */
  ranges?: SeenRange[];
  memory?: Memory;
}

export type SeenRange = [name: string, min: number, max: number];

/** A quantized model. `file` holds the bytes of `model` as a Blob. */
export interface Result {
  model: Uint8Array<ArrayBuffer>;
  file: Blob;
  report: string;
  summary: QuantizationSummary;
}

export type Elements =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

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

export interface CompareOptions {
  /** Reading of the samples. */
  samples?: SampleSettings;
  /** Also measures the error of weights alone and of activations alone; two more runs a sample. */
  split?: boolean;
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
