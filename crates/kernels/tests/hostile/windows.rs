//! Windows and convolutions that do not fit.

use octet_kernels::int8::*;

use super::{HUGE, image, requantized};

#[test]
fn winograd_refuses_strides_and_partial_rows() {
    let bytes = [1u8; 8 * 8 * 8];
    let shape = ConvShape {
        inputs: 8,
        outputs: 1,
        kernel: [3, 3],
        groups: 1,
    };
    let packed = ConvWeights::pack((Isa::best(), ConvAlgorithm::Winograd), &[1; 72], shape, &[]);
    let weights = packed.expect("a good shape");
    assert_eq!(weights.way(), ConvAlgorithm::Winograd);
    let multipliers = [1.0];
    let run = |strides, positions| {
        let window = Window {
            strides,
            ..Window::of([3, 3])
        };
        let mut values = [0; 36];
        let output = requantized(&mut values, 1, &multipliers);
        conv(
            &image(&bytes, 8, 8, 8),
            &window,
            &weights,
            None,
            positions,
            output,
        )
    };
    assert_eq!(run([1, 1], 0..18), Ok(()));
    assert!(run([2, 1], 0..18).is_err());
    assert!(run([1, 2], 0..18).is_err());
    assert!(run([0, 1], 0..18).is_err());
    assert!(run([1, 1], 0..17).is_err());
    assert!(run([1, 1], 4..18).is_err());
}

#[test]
fn windows_that_do_not_fit_are_refused() {
    let bytes = [1u8; 64];
    let shape = ConvShape {
        inputs: 4,
        outputs: 4,
        kernel: [2, 2],
        groups: 1,
    };
    let weights = ConvWeights::pack((Isa::best(), ConvAlgorithm::Gathered), &[1; 64], shape, &[])
        .expect("a good shape");
    let by_channel =
        DepthwiseWeights::pack(Isa::best(), &[1; 16], 4, [2, 2], &[]).expect("a good shape");
    let multipliers = [1.0; 4];
    let good = Window::of([2, 2]);
    let bad = |change: fn(&mut Window)| {
        let mut window = good.clone();
        change(&mut window);
        window
    };
    for (image, window, rows) in [
        (
            image(&bytes, 4, 4, 4),
            bad(|window| window.strides[0] = 0),
            0..1,
        ),
        (
            image(&bytes, 4, 4, 4),
            bad(|window| window.dilations[1] = 0),
            0..1,
        ),
        (
            image(&bytes, 4, 4, 4),
            bad(|window| window.kernel = [3, 2]),
            0..1,
        ),
        (
            image(&bytes, 4, 4, 4),
            bad(|window| window.kernel = [0, 2]),
            0..1,
        ),
        (
            image(&bytes, 4, 4, 4),
            bad(|window| window.dilations[0] = HUGE),
            0..1,
        ),
        (
            image(&bytes, 4, 4, 4),
            bad(|window| window.pads = [HUGE; 4]),
            0..1,
        ),
        (image(&bytes, 4, 4, 4), good.clone(), 0..4),
        (image(&bytes, 4, 4, 4), good.clone(), HUGE..HUGE + 1),
        (image(&bytes, 4, 4, 5), good.clone(), 0..3),
        (image(&bytes, 5, 4, 4), good.clone(), 0..3),
        (image(&bytes, HUGE, HUGE, 4), good.clone(), 0..1),
        (image(&bytes[..63], 4, 4, 4), good.clone(), 0..1),
    ] {
        let mut output = [7; 64];
        let result = conv(
            &image,
            &window,
            &weights,
            None,
            // Three positions per row, if the window is valid.
            rows.start.saturating_mul(3)..rows.end.saturating_mul(3),
            requantized(&mut output, 4, &multipliers),
        );
        assert!(result.is_err(), "{window:?} {rows:?}");
        let result = depthwise(
            &image,
            &window,
            &by_channel,
            None,
            rows.clone(),
            requantized(&mut output, 4, &multipliers),
        );
        assert!(result.is_err(), "{window:?} {rows:?}");
        assert_eq!(output, [7; 64]);
    }
    let mut output = [7; 64];
    for (size, rows, stride) in [
        ([4, 3], 0..3, 4),
        ([3, HUGE], 0..3, 4),
        ([3, 3], 0..4, 4),
        ([3, 3], 0..3, 3),
        ([3, 3], 0..3, HUGE),
    ] {
        let image = image(&bytes, 4, 4, 4);
        assert!(max_pool(&image, &good, size, rows.clone(), &mut output, stride).is_err());
        let how = Average {
            multiplier: 1.0,
            to: Target::whole(0),
            count_pads: false,
        };
        assert!(average_pool(&image, &good, size, rows, how, &mut output, stride).is_err());
    }
    assert_eq!(output, [7; 64]);
    // An output size that no image of this size produces.
    let weights =
        TransposedWeights::pack(Isa::best(), &[1; 64], shape, &good, &[]).expect("a good shape");
    for size in [[4, 4], [6, 5], [HUGE, HUGE], [0, 0]] {
        let mut output = [0; 128];
        let output = requantized(&mut output, 4, &multipliers);
        assert!(transposed(&image(&bytes, 4, 4, 4), size, &weights, None, 0..1, output).is_err());
    }
}
