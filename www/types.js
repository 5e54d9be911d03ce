// @ts-check
/**
 * The shapes that cross between page and worker. Types only: nothing asks for this file when the page runs. It
 * uses no name that only one of the two sides has.
 */

/** @typedef {{ path: string, blob: Blob }} NamedFile a file and the path a person knows it by */

/** @typedef {{ name: string, parts: string[] }} SampleRef one sample and the paths of its files */

/** @typedef {{ name: string, element: string, shape: string }} Port */

/**
 * @typedef {object} Card what a model is
 * @property {string} name
 * @property {number} bytes
 * @property {string} sha256
 * @property {number} opset
 * @property {number} irVersion
 * @property {string} producer
 * @property {Port[]} inputs
 * @property {Port[]} outputs
 * @property {{ name: string, bytes: number }[]} dataFiles the files beside it that hold its weights
 * @property {number} parameters
 * @property {[string, number][]} operators
 * @property {number} quantizable
 * @property {{ operator: string, count: number, reason: string }[]} float
 * @property {Proposal | null} pictures how pictures are probably to be read for it; `null` where they can't be its samples
 * @property {boolean} alreadyQuantized
 * @property {string[]} warnings
 */

/** @typedef {{ of: 'size' | 'resize' | 'values' | 'layout', certainty: 'sure' | 'likely' | 'guess', why: string }} Reason */

/**
 * @typedef {object} Proposal how pictures are probably to be read
 * @property {Record<string, any>} image the settings
 * @property {string} preset whose values they have
 * @property {boolean} open whether the model leaves height or width open
 * @property {number} multiple height and width must be multiples of this
 * @property {Reason[]} reasons what speaks for each part
 */

/** @typedef {{ sample: string, reason: string }} Skipped a sample that was left out */

/** @typedef {{ sample: string, reason: string, asksForSize: boolean }} Misfit a sample that can't be used as it is read; `asksForSize`: another size may mend it */

/**
 * @typedef {object} Preview one input of a sample, decoded
 * @property {string} [input]
 * @property {string} element
 * @property {number[]} shape
 * @property {number | null} min `null`, as the next three, where there is no value
 * @property {number | null} max
 * @property {number | null} mean
 * @property {number | null} std
 * @property {string[]} [notes]
 */

/** @typedef {{ previews: Preview[], first: Float32Array | null }} Decoded the previews, and the values of the first float input */

/** @typedef {'u8' | 'i8' | 'u16' | 'i16' | 'u4' | 'i4'} ElementType */

/**
 * @typedef {object} TensorSettings how a tensor is represented; `range`, `scale` and `zero_point` of a single tensor only
 * @property {ElementType} [type]
 * @property {boolean} [symmetric]
 * @property {boolean} [reduce_range]
 * @property {boolean | 'nearest'} [power_of_two]
 * @property {boolean} [per_channel]
 * @property {number} [minimum_range]
 * @property {boolean} [snap_zero]
 * @property {string} [method]
 * @property {[number, number]} [range]
 * @property {number} [scale]
 * @property {number} [zero_point]
 */

/** @typedef {{ float?: boolean, float_output?: boolean, constant_only?: boolean, always?: boolean, activations?: TensorSettings, weights?: TensorSettings }} LayerSettings */

/** @typedef {'static' | 'dynamic' | 'weights' | 'blocks' | 'float16'} Scheme all but `static` need no calibration */

/**
 * @typedef {object} QuantizeSettings what the quantizer does: the document of `docs/settings.md`
 * @property {Scheme} [scheme]
 * @property {'qdq' | 'qoperator' | 'simulated'} [format]
 * @property {string} [method] `minmax`, `percentile:99.99`, `mse`, `auto` …
 * @property {boolean | Record<string, boolean | number>} [guard] what may be made finer, so that nothing is ruined
 * @property {boolean} [bias_correction] whether biases make up for what rounding the weights adds in the mean
 * @property {'nearest' | 'gptq'} [rounding] how weights are rounded; `gptq` must have been said to `calibrate`, too
 * @property {boolean | number} [equalize] by how much channels are made alike; must have been said to `calibrate`, too
 * @property {boolean} [quantize_bias] whether biases become integers of 32 bits
 * @property {boolean} [fit_bias] whether the scale of a weight grows where its bias would not fit 32 bits
 * @property {number} [fine_first] how many of the first values behind the first Conv get 16 bits at most
 * @property {TensorSettings} [activations]
 * @property {TensorSettings} [weights]
 * @property {string | string[]} [operators]
 * @property {string[]} [float]
 * @property {boolean} [keep_io] whether inputs and outputs stay float32 where the scheme is `float16`
 * @property {Record<string, unknown>} [blocks]
 * @property {Record<string, LayerSettings>} [by_operator]
 * @property {Record<string, LayerSettings>} [by_name]
 * @property {Record<string, LayerSettings>} [by_node]
 * @property {Record<string, TensorSettings>} [tensors]
 */

/** @typedef {{ name: string, operator: string, inputs: string[], outputs: string[] }} NodeView */

/**
 * @typedef {object} GraphView a graph as it is looked at: its nodes in order, and the type of each value that has a known one
 * @property {NodeView[]} nodes
 * @property {Record<string, { element: string, shape: string, constant: boolean }>} values
 * @property {string[]} inputs
 * @property {string[]} outputs
 */

/**
 * @typedef {object} Distribution what calibration saw of a value: bars from `low` on, each `width` wide, and the range of each method
 * @property {[number, number]} ends
 * @property {number} count
 * @property {number} zeros
 * @property {number} odd values that are NaN or infinite
 * @property {number} low
 * @property {number} width
 * @property {number[]} counts
 * @property {[string, [number, number]][]} ranges
 */

/** @typedef {{ id: number, sizes: [number, number][], edges: [number, number][] }} ToLay a graph for the layout worker: the width and height of each node, and edges between places in that list */

/** @typedef {{ id: number, nodes: Float32Array, edges: Float32Array[], width: number, height: number }} Laid the centre of each node (x, y), and the corners of each edge */

/** @typedef {{ axis: number, min: number[], max: number[] }} Channels the ends of each channel of a weight */

/** @typedef {{ image?: Record<string, unknown>, demo?: boolean, badSamples?: 'skip' | 'stop', skipped?: Skipped[] }} SampleSettings how samples are read; `demo` says in the report that they are random, `skipped` which were left out before; a bad one is left out of a run, or stops it */

/**
 * @typedef {object} CalibrateOptions
 * @property {string} [method] `minmax`, `percentile:99.99`, `entropy`, `mse`, `auto` …: as `octet quantize --method`
 * @property {'nearest' | 'gptq'} [rounding] how weights will be rounded: `gptq` runs the samples once more
 * @property {boolean | number} [equalize] by how much channels are made alike, which runs the samples once more
 * @property {SampleSettings} [samples]
 * @property {AbortSignal} [signal]
 * @property {AbortSignal} [enough] when it fires, the calibration ends with the samples it has seen, at least one portion
 */

/**
 * @typedef {object} Forecast what calibrating and quantizing will take, told before
 * @property {number} samples how many it is told for
 * @property {number} threads how many run at once
 * @property {number} ms the time until the quantized model is there
 * @property {number} sampleMs of it for each sample, on one thread
 * @property {number} peakBytes the most that will be allocated at once
 * @property {string} peakStage the stage in which that is, as in the report
 * @property {number} weightBytes of the peak: the file, and what the engine makes of its weights
 * @property {number} liveBytes of the peak: activations of the samples that run at once
 * @property {number} rangeBytes of the peak: what is seen of every tensor
 * @property {number} outputBytes the size of the quantized model
 * @property {number} macs of one sample: multiplications with an addition
 * @property {number | null} limitBytes what can be allocated here at most; `null` where that is not known
 * @property {string | null} refusal why it can't be done here, and a way that can; `null` where it can
 */

/**
 * @typedef {object} ForecastOptions
 * @property {string} [method] as in `CalibrateOptions`
 * @property {SampleSettings} [samples]
 * @property {QuantizeSettings} [settings]
 * @property {AbortSignal} [signal]
 */

/** @typedef {{ samples: number, given: number, skipped: Skipped[], values: number, prepared: string[] }} CalibrationSummary `samples` were run of those `given`, and those `skipped` could not be */

/**
 * @typedef {object} Memory in bytes; `pages` only grows, `live` is what is in use
 * @property {number} pages
 * @property {number} live
 * @property {number} peak
 */

/**
 * @typedef {object} Progress
 * @property {string} stage in words
 * @property {number} [done]
 * @property {number} [of]
 * @property {string} [unit] what is counted: `bytes`, `samples`
 * @property {SeenRange[]} [ranges] of what is watched, as far as it was seen; left out where nothing is new
 * @property {Memory} [memory]
 */

/** @typedef {[name: string, min: number, max: number]} SeenRange */

/** @typedef {{ name: string, kind: string, element: string, scales: number, scale: number, zeroPoint: number, min: number, max: number, corrected?: number, compensated?: number }} QuantizedTensor */

/** @typedef {{ node: string, operator: string, quantized: boolean, reason: string | null }} NodeChoice */

/**
 * @typedef {object} Summary
 * @property {'static' | 'dynamic' | 'weights' | 'blocks' | 'float16'} scheme where it is `float16`, `quantized` of a node means half precision
 * @property {string} fileName what the file should be named, by scheme
 * @property {number} bytesBefore
 * @property {number} bytesAfter
 * @property {NodeChoice[]} nodes
 * @property {QuantizedTensor[]} tensors
 * @property {string[]} notes what a person should know of it
 * @property {string[]} advice what should be chosen otherwise where the result is larger than it need be: it grew, or much of it stays float32
 * @property {number} [guarded] so many of the notes, the first, tell of a tensor that the guard kept from being ruined
 */

/** @typedef {{ model: Uint8Array<ArrayBuffer>, file: Blob, report: string, summary: Summary }} Result `file` is `model`, ready to be saved, posted and read in slices */

/** @typedef {Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Uint8Array | Uint16Array | Uint32Array | BigUint64Array} Elements */

/** @typedef {{ name: string, shape: number[], data: Elements }} InputTensor a value for the input of that name */

/** @typedef {{ name: string, element: string, shape: number[], data: Elements }} OutputTensor what a model makes; booleans are bytes */

/**
 * @typedef {object} RunOptions
 * @property {number} [runs] so many are measured, 10 where nothing is said
 * @property {number} [warmUp] so many run before, 2 where nothing is said
 * @property {SampleSettings} [samples] how the sample's files are read
 * @property {'octet' | 'tract'} [floatKernels] whose kernels run float convolutions; the faster ones, which are Octet's, where nothing is said
 * @property {AbortSignal} [signal]
 * @property {AbortSignal} [gently] when it fires, the call ends at its next step, however long that takes: the worker is kept
 */

/** @typedef {{ median: number, p10: number, p90: number, mean: number }} Spread milliseconds over the runs; means add up, medians don't */

/** @typedef {{ name: string, element: string, shape: number[] }} Edge a tensor that a layer reads or makes; a size that depends on values is 0 */

/**
 * @typedef {object} Layer a node of the model with what was fused into it
 * @property {string} name
 * @property {string} operator
 * @property {string[]} nodes all nodes of the model it stands for
 * @property {string} kernel the code that ran
 * @property {string | null} conversion where it only changes the form of numbers: why
 * @property {string | null} inFloat where it runs in float in a model of integers: why
 * @property {Edge[]} inputs without constants
 * @property {Edge[]} outputs
 * @property {number} macs multiplications with an addition
 * @property {number} calls steps of the engine in one run
 * @property {Spread} ms its own time
 * @property {number} share of the time of all layers, 0 to 1
 * @property {number | null} gmacs billions of `macs` a second; `null` where there are none, or the clock is too coarse
 * @property {number} ownBytes what it makes
 * @property {number} peakBytes live while it ran, beyond `residentBytes`
 * @property {number} liveBytes live after it, beyond `residentBytes`
 */

/**
 * @typedef {object} Totals of a run
 * @property {number} runs
 * @property {number} warmUp
 * @property {number} resolutionMs the smallest step of the clock
 * @property {Spread} total the whole run
 * @property {number} outsideMs of a run spent outside all layers
 * @property {number} residentBytes allocated before: file, weights, plan
 * @property {number} peakBytes the most that was live beyond those
 * @property {string} peakLayer where that was
 * @property {number} sumBytes what all layers make together
 * @property {number} macs
 * @property {string[]} before nodes that did not run: computed before, or without effect
 */

/** @typedef {{ outputs: OutputTensor[], layers: Layer[], totals: Totals }} Run */

/**
 * @typedef {object} CompareOptions
 * @property {SampleSettings} [samples] how the samples are read
 * @property {boolean} [split] whether the error of weights alone and of activations alone is told, too, for two more runs a sample
 * @property {Record<string, number>} [labels] the number of each sample's class, by the sample's name
 * @property {AbortSignal} [signal]
 * @property {AbortSignal} [gently] as in `RunOptions`
 */

/** @typedef {{ sqnr: number, cosine: number, max: number, mean: number }} Apart how far two values are apart; `sqnr` in decibels, 200 where nothing is */

/** @typedef {'classes' | 'steps' | 'embedding' | 'boxes' | 'scores' | 'values' | 'integers' | 'passed'} OutputKind what an output is to be judged by; the last two by nothing */

/** @typedef {{ confident: number, found: number, extra: number }} FoundAgain boxes of the float model with a score of a quarter or more, those that the quantized one finds again, and those it alone has */

/**
 * @typedef {object} OutputError what quantizing did to an output
 * @property {string} name
 * @property {OutputKind} kind
 * @property {Apart} apart
 * @property {number | null} top1 the share of rows of classes whose greatest is the same
 * @property {number | null} top5
 * @property {[number, number] | null} accuracy of the float and of the quantized model
 * @property {FoundAgain | null} boxes
 * @property {{ boxes: number, scores: number } | null} parts the SQNR of each, where both are in one output
 * @property {number | null} weightsOnly the SQNR with all weights of the model as integers and nothing else, where the error was split
 * @property {number | null} activationsOnly with all activations
 */

/**
 * @typedef {object} LayerError what quantizing did to the value a layer makes
 * @property {string} layer the node's name
 * @property {string} operator
 * @property {string} value
 * @property {boolean} rounded whether the value is integers in the quantized model
 * @property {Apart} accumulated the error of all layers up to here
 * @property {Apart | null} added the error of this layer on the float model's values; `null` where it only moves them
 * @property {number | null} weightsOnly the same as SQNR with only the weights as integers
 * @property {number | null} activationsOnly with only the activations
 * @property {number} clipped the share of the float values beyond the integers' ends
 * @property {number} min the least float value
 * @property {number} max
 * @property {[number, number] | null} range what the integers can hold
 * @property {number} harm its share of what all layers add, 0 to 1
 */

/** @typedef {{ kind: string, message: string, keepFloat: string[] }} Warning `keepFloat` names the layers that mend it when they stay float */

/**
 * @typedef {object} Comparison
 * @property {number} samples
 * @property {OutputError[]} outputs
 * @property {string | null} headline the output that is worst off, among those that tell anything
 * @property {LayerError[]} layers in the order of the float model; none where they could not be compared
 * @property {string | null} layersFailed why the layers could not be compared while the outputs were
 * @property {string[]} worst the layers that add most, the worst first
 * @property {string[]} unpaired float values without a counterpart
 * @property {Warning[]} warnings
 */

/** @typedef {{ kind: string, message: string }} Failure */

/**
 * The word the cores share with the page: `control` is an `Int32Array` over wasm memory, `panic` the bytes of
 * a panic's message. Only where the page is isolated.
 *
 * @typedef {{ control: Int32Array, panic: Uint8Array }} Shared
 */

/** @typedef {{ id: number, call: string, args: any, enough?: boolean }} Request `enough`: no call of its own, but said of the call with that id */

/** @typedef {{ id: number, value?: any, failure?: Failure, progress?: Progress }} Reply */

export {};
