// @ts-check
/** Calibration methods with labels. Generated from the Rust list by `make contracts`. @type {[string, string][]} */
export const methods = [
  ['auto', 'Least expected error (auto)'],
  ['minmax', 'Full range, as ONNX Runtime (minmax)'],
  ['mse', 'Least squared error (mse)'],
  ['percentile:99.999', '99.999 % of the values'],
  ['percentile:99.99', '99.99 % of the values'],
  ['percentile:99.9', '99.9 % of the values'],
  ['entropy', 'Least information loss (entropy)'],
  ['moving-average', 'Mean range of the samples (moving-average)'],
];
