/*
 * The calls from the page to the worker: arguments and result of each. engine.js sends them,
 * worker.js answers them; both are checked against this table.
 */

import type {
  ChannelRanges, Comparison, Export, Forecast, GraphView, ImageSettings, Memory, ModelSummary, RangeFileSummary, Rounding, SampleRef, SampleSettings, Settings, SharedStatistics, StreamedPlan, TextSettings, UnusableSample, ValueDistribution,
} from './types.js';
import type {
  Calibration, Decoded, Elements, ElementType, Failure, InputTensor, NamedFile, OutputTensor, Place, Progress, RangeFormat, Result, Run, RunOptions, SampleAnswer, SearchChoices, SearchOutcome, SeenValue, Shared, SnippetKind, StreamedFiles, TokenizedTexts, WrittenRanges,
} from './api.js';

/** An open model. `wanted` lists external data files that are missing. */
export interface Opened {
  card: ModelSummary;
  wanted: string[];
}

/**
 * A plan and what an earlier conversion left at its place. `kept`: the bytes that need not be read
 * again; `misfit`: why it can't go on; `rate`: bytes in a millisecond.
 */
export interface PlannedStream {
  plan: StreamedPlan;
  kept: number | null;
  misfit: string;
  finished: boolean;
  rate: number;
}

/** A conversion: settings, the greatest size of a file, and where to. */
interface StreamedJob {
  key: number;
  settings: Settings;
  limit: number;
  place: Place;
}

/** The number that the page gives an open model. */
interface Key {
  key: number;
}

export interface Calls {
  start(args: { variant: 'threads' | 'baseline'; threads: number; files?: Record<string, string>; lock?: string; module?: WebAssembly.Module }): { shared: Shared | null; locked: boolean };
  memory(args: {}): Memory;
  presets(args: {}): Record<string, ImageSettings>;
  group(args: { paths: string[] }): SampleRef[];
  graphOf(args: { blob: Blob }): GraphView;
  withOutputs(args: { blob: Blob; values: string[] }): Blob;
  excerpt(args: { blob: Blob; inputs: SeenValue[]; outputs: string[] }): Blob;
  tokenize(args: { texts: NamedFile[]; tokenizer: NamedFile; config: NamedFile | null; settings: TextSettings; length: number | null }): TokenizedTexts;
  beginScope(args: { message: string }): void;
  endScope(args: {}): void;

  open(args: Key & { name: string; blob: Blob }): Opened;
  attach(args: Key & { files: NamedFile[] }): Opened;
  close(args: Key): void;
  preview(args: Key & { files: NamedFile[]; settings: SampleSettings }): Decoded;
  check(args: Key & { files: NamedFile[]; settings: SampleSettings }): UnusableSample[];
  tensors(args: Key & { files: NamedFile[]; settings: SampleSettings }): OutputTensor[];
  demoSamples(args: Key & { count: number; seed: number }): NamedFile[];
  tableRows(args: Key & { file: NamedFile }): NamedFile[];
  snippet(args: Key & { kind: SnippetKind; file: string; image: ImageSettings | null }): string;
  forecast(args: Key & { files: NamedFile[]; method: string; samples: SampleSettings; settings: Settings }): Forecast;
  calibrate(args: Key & {
    files: NamedFile[]; method: string; rounding?: Rounding; equalize?: Settings['equalize']; tuning?: Settings; journal?: boolean; samples: SampleSettings;
  }): Calibration;
  quantize(args: Key & { settings: Settings }): Result & { memory: Memory };
  run(args: Key & {
    sample: (NamedFile | InputTensor)[]; samples: SampleSettings; runs: number; warmUp: number; floatKernels?: RunOptions['floatKernels'];
  }): Run;
  compare(args: Key & {
    quantized: Blob; files: NamedFile[]; samples: SampleSettings; labels: Record<string, number>; split: boolean; layers: boolean; answers: boolean;
  }): Comparison & { answers: SampleAnswer[] };
  search(args: Key & {
    name: string; blob: Blob; attached: NamedFile[]; files: NamedFile[]; samples: SampleSettings; labels: Record<string, number>; settings: Settings;
    calibration: { method: string; rounding: Rounding; equalize?: Settings['equalize'] }; options: SearchChoices;
  }): SearchOutcome;
  searchSettings(args: Key & { point: number }): Settings;
  /** `data` are the files of the model's weights. */
  readStatistics(args: Key & { statistics: NamedFile[]; data: NamedFile[] }): SharedStatistics;
  calibrateByStatistics(args: Key & { statistics: NamedFile[]; data: NamedFile[]; settings: Settings }): Calibration;
  observe(args: {
    name: string; blob: Blob; files: NamedFile[]; source: string; samples: SampleSettings; settings: Settings; statistics: NamedFile[]; data: NamedFile[];
  }): Blob;
  readRanges(args: Key & { file: NamedFile }): RangeFileSummary;
  calibrateByRanges(args: Key & { file: NamedFile }): Calibration;
  writeRanges(args: Key & { format: RangeFormat; ranges: Result['ranges']; quantized: Blob }): WrittenRanges;
  graph(args: Key): GraphView;
  distribution(args: Key & { value: string; element: ElementType; symmetric?: boolean }): ValueDistribution | null;
  channels(args: Key & { weight: string }): ChannelRanges | null;
  openInference(args: Key & { name: string; blob: Blob; data: NamedFile[] }): ModelSummary;
  /** Null runs with the values that were written into the arrays of `stageInputs`. `ms`: the time in the engine. */
  infer(args: Key & { inputs: InputTensor[] | null }): { outputs: OutputTensor[]; ms: number };
  /** Arrays in the memory that the worker shares. Empty if the inputs can't be written there. */
  stageInputs(args: Key & { inputs: InputTensor[] }): { name: string; data: Elements }[];
  closeInference(args: Key): void;
  openStreamed(args: Key & { file: NamedFile }): { wanted: string[] };
  attachStreamed(args: Key & { files: NamedFile[] }): { card: ModelSummary };
  /** Without a place, it looks for no earlier conversion and takes no time. */
  planStreamed(args: Omit<StreamedJob, 'place'> & { place: Place | null }): PlannedStream;
  convert(args: StreamedJob & { resume: boolean }): StreamedFiles;
  discardStreamed(args: StreamedJob): void;
  closeStreamed(args: Key): void;
  report(args: Key): string;
  export(args: Key & { kind: Export }): string;
}

export type Call = keyof Calls;
export type Arguments<K extends Call> = Parameters<Calls[K]>[0];
export type Answer<K extends Call> = ReturnType<Calls[K]>;

/** Handlers in the worker. `enough` resolves to true once the page wants no more samples. */
export type Handlers = {
  [K in Call]: (
    args: Arguments<K>, report: (progress: Progress) => void, enough: () => Promise<boolean>,
  ) => Answer<K> | Promise<Answer<K>>;
};

/** A message to the worker: a call, or `enough` about the call with that id. */
export interface Request {
  id: number;
  call: Call;
  args: any;
  enough?: boolean;
}

/** A message from the worker about the call with that id. */
export interface Reply {
  id: number;
  value?: any;
  failure?: Failure;
  progress?: Progress;
}
