//! Products with weights and of two values, rows shared out among the threads.

use octet_kernels::int8::{self as kernels, Error, Layout, Output, Requantize, Rows, Weights};

use super::instruction::{Convolution, Epilogue, Kernel, Measured, Weighted, Work};
use super::slices::{Slice, bytes_of, floats_of, images, one, view};
use super::threads::{cost_of_product, share};
use crate::engine::integer::quantization::SIGN;

pub(super) fn requantized<'a>(
    values: &'a mut [u8],
    stride: usize,
    epilogue: &'a Epilogue,
) -> Output<'a> {
    let to = epilogue.to.unwrap_or(kernels::Target::whole(0));
    Output::Requantized {
        values,
        stride,
        by: Requantize {
            multipliers: &epilogue.factors,
            zero_point: to.zero_point,
            low: to.low,
            high: to.high,
        },
    }
}

pub(super) fn floats<'a>(
    values: &'a mut [f32],
    stride: usize,
    epilogue: &'a Epilogue,
) -> Output<'a> {
    Output::Floats {
        values,
        stride,
        scales: &epilogue.factors,
        bias: epilogue.bias.as_deref(),
    }
}

pub(super) fn sums<'a>(values: &'a mut [i32], stride: usize, _: &'a Epilogue) -> Output<'a> {
    Output::Accumulators { values, stride }
}

/// How rows of sums are written, as bytes, floats or sums: the rows, how far apart they are, and by what factors.
type Written<T> = for<'a> fn(&'a mut [T], usize, &'a Epilogue) -> Output<'a>;

/// A product of bytes with this zero point.
pub(super) fn product<T: Send>(
    weighted: &Weighted,
    given: (&[u8], u8),
    bias: Option<&[i32]>,
    output: (&mut [T], &Epilogue),
    sink: Written<T>,
) -> Result<(), Error> {
    match weighted {
        Weighted::Rows(count, weights) => multiply(*count, given, weights, bias, output, sink),
        Weighted::Convolution(convolution) => convolve(convolution, given, bias, output, sink),
    }
}

/// The same where zero point and scale are among the inputs.
pub(super) fn measured<T: Send>(
    measured: &Measured,
    inputs: &[Slice],
    output: &mut [T],
    sink: Written<T>,
) -> Result<(), Error> {
    let zero_point = match measured.zero_point {
        Some(zero_point) => zero_point,
        None => one(bytes_of(inputs, 1)?)?,
    };
    let scale = match measured.scaled {
        true => one(floats_of(inputs, inputs.len() - 1)?)?,
        false => 1.0,
    };
    let epilogue = Epilogue {
        factors: measured.factors.iter().map(|own| scale * own).collect(),
        bias: measured.bias.clone(),
        to: None,
    };
    let given = (bytes_of(inputs, 0)?, zero_point);
    product(&measured.weighted, given, None, (output, &epilogue), sink)
}

fn convolve<T: Send>(
    convolution: &Convolution,
    (given, zero_point): (&[u8], u8),
    bias: Option<&[i32]>,
    (output, epilogue): (&mut [T], &Epilogue),
    sink: Written<T>,
) -> Result<(), Error> {
    let Convolution {
        kernel,
        window,
        from,
        to,
        ..
    } = convolution;
    let taps = window.kernel[0] * window.kernel[1];
    // Channels in that go into one channel out; sixteen products of a depthwise convolution take a few instructions.
    let depth = match kernel {
        Kernel::Dense(weights) => weights.shape().inputs / weights.shape().groups.max(1),
        Kernel::Transposed(_) => from.channels,
        Kernel::Depthwise(_) => 4,
    };
    debug_assert_eq!(output.len(), convolution.images * to.count());
    for (image, output) in images(given, output, from.count(), to.count()) {
        let image = view(image, from, zero_point);
        share(
            output,
            to.width * to.channels,
            cost_of_product(to.count() * taps * depth),
            |rows, output| {
                let sink = sink(output, to.channels, epilogue);
                match kernel {
                    Kernel::Dense(weights) => {
                        kernels::conv(&image, window, weights, bias, rows, sink)
                    }
                    Kernel::Depthwise(weights) => {
                        kernels::depthwise(&image, window, weights, bias, rows, sink)
                    }
                    Kernel::Transposed(weights) => {
                        let size = [to.height, to.width];
                        kernels::transposed(&image, size, weights, bias, rows, sink)
                    }
                }
            },
        )?;
    }
    Ok(())
}

fn multiply<T: Send>(
    rows: usize,
    (given, zero_point): (&[u8], u8),
    weights: &Weights,
    bias: Option<&[i32]>,
    (output, epilogue): (&mut [T], &Epilogue),
    sink: Written<T>,
) -> Result<(), Error> {
    let depth = weights.depth();
    share(
        output,
        weights.columns(),
        cost_of_product(rows * depth * weights.columns()),
        |part, output| {
            let rows = Rows {
                values: given
                    .get(part.start * depth..part.end * depth)
                    .unwrap_or_default(),
                count: part.len(),
                stride: depth,
                zero_point,
            };
            kernels::gemm(
                &rows,
                weights,
                bias,
                sink(output, weights.columns(), epilogue),
            )
        },
    )
}

pub(super) fn pair(work: &Work, left: &[u8], right: &[u8], output: &mut [u8]) -> Result<(), Error> {
    let Work::Pair {
        stacks,
        stacked,
        sizes,
        zero_points,
        factor,
        to,
    } = work
    else {
        return Err(Error::Zero {
            what: "the pair of factors",
        });
    };
    let [rows, depth, columns] = *sizes;
    let factors = vec![*factor; columns];
    // The second factor takes the place of weights, which are signed.
    let zeros = vec![(zero_points[1] ^ SIGN) as i8; columns];
    let each = rows * columns;
    share(
        output,
        each,
        cost_of_product(stacks * each * depth),
        |part, output| {
            for (stack, output) in part.zip(output.chunks_exact_mut(each.max(1))) {
                let of = |on: bool, size: usize| if on { stack * size } else { 0 };
                let (a, b) = (
                    of(stacked[0], rows * depth),
                    of(stacked[1], depth * columns),
                );
                let signed: Vec<i8> = right[b..b + depth * columns]
                    .iter()
                    .map(|&v| (v ^ SIGN) as i8)
                    .collect();
                let form = kernels::Form::best();
                let weights =
                    Weights::pack(form, &signed, Layout::DepthFirst, [depth, columns], &zeros)?;
                let rows = Rows {
                    values: &left[a..a + rows * depth],
                    count: rows,
                    stride: depth,
                    zero_point: zero_points[0],
                };
                let by = Requantize {
                    multipliers: &factors,
                    zero_point: to.zero_point,
                    low: to.low,
                    high: to.high,
                };
                let sink = Output::Requantized {
                    values: output,
                    stride: columns,
                    by,
                };
                kernels::gemm(&rows, &weights, None, sink)?;
            }
            Ok(())
        },
    )
}
