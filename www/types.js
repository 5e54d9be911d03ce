// @ts-check
/**
 * The shapes that cross between page and worker. Types only: importing this file costs nothing, and it
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
 * @property {number} parameters
 * @property {[string, number][]} operators
 * @property {number} quantizable
 * @property {{ operator: string, count: number, reason: string }[]} float
 * @property {boolean} alreadyQuantized
 * @property {string[]} warnings
 */

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
 * @property {boolean} [power_of_two]
 * @property {boolean} [per_channel]
 * @property {string} [method]
 * @property {[number, number]} [range]
 * @property {number} [scale]
 * @property {number} [zero_point]
 */

/** @typedef {{ float?: boolean, activations?: TensorSettings, weights?: TensorSettings }} LayerSettings */

/** @typedef {'static' | 'dynamic' | 'weights' | 'blocks' | 'float16'} Scheme all but `static` need no calibration */

/**
 * @typedef {object} QuantizeSettings what the quantizer does: the document of `docs/settings.md`
 * @property {Scheme} [scheme]
 * @property {'qdq' | 'qoperator' | 'simulated'} [format]
 * @property {string} [method] `minmax`, `percentile:99.99`, `mse`, `auto` …
 * @property {boolean} [guard] whether tensors whose integers would be too coarse get 16 bits, or stay float
 * @property {TensorSettings} [activations]
 * @property {TensorSettings} [weights]
 * @property {string | string[]} [operators]
 * @property {string[]} [float]
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

/** @typedef {{ image?: Record<string, unknown>, demo?: boolean }} SampleSettings how samples are read; `demo` says in the report that they are random */

/**
 * @typedef {object} CalibrateOptions
 * @property {string} [method] `minmax`, `percentile:99.99`, `entropy`, `mse`, `auto` …: as `octet quantize --method`
 * @property {SampleSettings} [samples]
 * @property {AbortSignal} [signal]
 */

/** @typedef {{ samples: number, values: number, prepared: string[] }} CalibrationSummary */

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
 * @property {Memory} [memory]
 */

/** @typedef {{ name: string, kind: string, element: string, scales: number, scale: number, zeroPoint: number, min: number, max: number }} QuantizedTensor */

/** @typedef {{ node: string, operator: string, quantized: boolean, reason: string | null }} NodeChoice */

/**
 * @typedef {object} Summary
 * @property {number} bytesBefore
 * @property {number} bytesAfter
 * @property {NodeChoice[]} nodes
 * @property {QuantizedTensor[]} tensors
 * @property {string[]} notes what a person should know of it
 */

/** @typedef {{ model: Uint8Array<ArrayBuffer>, report: string, summary: Summary }} Result */

/** @typedef {{ kind: string, message: string }} Failure */

/**
 * The word the cores share with the page: `control` is an `Int32Array` over wasm memory, `panic` the bytes of
 * a panic's message. Only where the page is isolated.
 *
 * @typedef {{ control: Int32Array, panic: Uint8Array }} Shared
 */

/** Places in `control`. */
export const slot = { cancel: 0, done: 1, panicked: 2 };

/** @typedef {{ id: number, call: string, args: any }} Request */

/** @typedef {{ id: number, value?: any, failure?: Failure, progress?: Progress }} Reply */

export {};
