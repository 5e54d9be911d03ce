//! Invalid arguments give an error with its reason. They never panic, and nothing is written.
#![cfg(not(target_family = "wasm"))]
#![allow(clippy::unwrap_used)]

mod windows;

use std::ops::Range;

use octet_kernels::int8::*;

const HUGE: usize = usize::MAX / 2;

fn requantized<'a>(values: &'a mut [u8], stride: usize, multipliers: &'a [f32]) -> Output<'a> {
    Output::Requantized {
        values,
        stride,
        by: Requantize {
            multipliers,
            zero_point: 0,
            low: 0,
            high: 255,
        },
    }
}

fn image(values: &[u8], height: usize, width: usize, channels: usize) -> Image<'_> {
    Image {
        values,
        height,
        width,
        channels,
        stride: channels,
        zero_point: 0,
    }
}

#[test]
fn weights_too_short_for_their_shape_are_refused() {
    let values = [1i8; 64];
    for sizes in [
        [HUGE, 2],
        [2, HUGE],
        [HUGE, HUGE],
        [65, 1],
        [0, 5],
        [0, HUGE],
    ] {
        for layout in [WeightLayout::ColumnAfterColumn, WeightLayout::DepthFirst] {
            let packed = Weights::pack(Isa::best(), &values, layout, sizes, &[]);
            assert!(packed.is_err(), "{sizes:?}");
        }
    }
    assert!(
        Weights::pack(
            Isa::best(),
            &values,
            WeightLayout::DepthFirst,
            [8, 8],
            &[0; 7]
        )
        .is_err()
    );
    let shape = |inputs, outputs, kernel, groups| ConvShape {
        inputs,
        outputs,
        kernel,
        groups,
    };
    for bad in [
        shape(4, 4, [3, 3], 0),
        shape(4, 4, [3, 3], 3),
        shape(HUGE, HUGE, [3, 3], 1),
        shape(4, 4, [HUGE, HUGE], 1),
        shape(0, 4, [1, 1], 1),
        shape(0, HUGE, [1, 1], HUGE),
        shape(0, 0, [1, 1], HUGE),
        shape(8, 9, [1, 1], 1),
    ] {
        assert!(
            ConvWeights::pack((Isa::best(), ConvAlgorithm::Gathered), &values, bad, &[]).is_err(),
            "{bad:?}"
        );
        let window = Window::of(bad.kernel);
        assert!(
            TransposedWeights::pack(Isa::best(), &values, bad, &window, &[]).is_err(),
            "{bad:?}"
        );
    }
    for (channels, kernel) in [
        (HUGE, [1, 1]),
        (4, [HUGE, HUGE]),
        (HUGE, [0, 0]),
        (65, [1, 1]),
    ] {
        assert!(DepthwiseWeights::pack(Isa::best(), &values, channels, kernel, &[]).is_err());
    }
    for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
        let packed = Weights::pack(isa, &values, WeightLayout::DepthFirst, [8, 8], &[]);
        assert_eq!(packed.err(), Some(Error::Unavailable(isa)));
        assert_eq!(Isa::set_best(isa), Err(Error::Unavailable(isa)));
    }
}

#[test]
fn slices_too_short_are_refused() {
    let weights = Weights::pack(Isa::best(), &[1; 64], WeightLayout::DepthFirst, [8, 8], &[])
        .expect("a good shape");
    let rows = |values, count, stride| Rows {
        values,
        count,
        stride,
        zero_point: 0,
    };
    let (bytes, multipliers) = ([1u8; 64], [1.0f32; 8]);
    for (case, (rows, length, stride, multipliers)) in [
        (rows(&bytes[..63], 8, 8), 64, 8, &multipliers[..]),
        (rows(&bytes, 9, 8), 72, 8, &multipliers),
        (rows(&bytes, HUGE, 8), 64, 8, &multipliers),
        (rows(&bytes, 2, HUGE), 64, 8, &multipliers),
        (rows(&bytes, 9, 7), 72, 8, &multipliers),
        (rows(&bytes, 8, 8), 63, 8, &multipliers),
        (rows(&bytes, 8, 8), 64, 7, &multipliers),
        (rows(&bytes, 8, 8), 64, HUGE, &multipliers),
        (rows(&bytes, 8, 8), 64, 8, &multipliers[..7]),
        (rows(&bytes, 8, 8), 64, 8, &[f32::NAN; 8]),
        (rows(&bytes, 8, 8), 64, 8, &[f32::INFINITY; 8]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut output = vec![7; length];
        let error = gemm(
            &rows,
            &weights,
            None,
            requantized(&mut output, stride, multipliers),
        )
        .expect_err("a bad shape");
        assert!(error.to_string().len() > 10, "{error}");
        assert!(
            output.iter().all(|&byte| byte == 7),
            "case {case} wrote: {error}"
        );
    }
    let backwards = Range { start: 8, end: 0 };
    for columns in [1..8, 0..9, HUGE..HUGE + 1, backwards] {
        let mut output = [7; 64];
        let expected = requantized(&mut output, 8, &multipliers);
        let rows = rows(&bytes, 8, 8);
        assert!(gemm_columns(&rows, &weights, columns, None, expected).is_err());
        assert_eq!(output, [7; 64]);
    }
    let mut output = [0; 64];
    let bias = Some(&[1; 7][..]);
    assert!(
        gemm(
            &rows(&bytes, 8, 8),
            &weights,
            bias,
            requantized(&mut output, 8, &multipliers)
        )
        .is_err()
    );
}

#[test]
fn other_kernels_refuse_invalid_arguments() {
    let (bytes, mut output) = ([1u8; 12], [0u8; 12]);
    let operand = |length: usize| Operand::new(&bytes[..length], 0);
    let whole = Target::whole(0);
    assert!(add((&operand(12), 1.0), (&operand(5), 1.0), whole, &mut output).is_err());
    assert!(
        add(
            (&operand(12), f32::NAN),
            (&operand(12), 1.0),
            whole,
            &mut output
        )
        .is_err()
    );
    assert!(multiply(&operand(0), &operand(12), 1.0, whole, &mut output).is_err());
    assert!(extreme([&operand(5), &operand(12)], true, &mut output).is_err());
    let scale = Scale {
        scale: 1.0,
        zero_point: 0,
    };
    assert!(quantize(&[0.0; 11], scale, &mut output).is_err());
    assert!(dequantize(&bytes, scale, &mut [0.0; 11]).is_err());
    assert!(softmax(&bytes, 5, 1.0, scale, &mut output).is_err());
    assert!(softmax(&bytes, 0, 1.0, scale, &mut output).is_err());
    let affine = |scale, bias, each| Affine {
        scale,
        bias,
        each,
        first: usize::MAX / 4,
    };
    for (length, affine) in [
        (4, affine(&[1.0; 3], None, 1)),
        (4, affine(&[1.0; 4], None, 0)),
        (4, affine(&[], None, 1)),
        (4, affine(&[1.0; 4], Some(&[1.0; 3]), 1)),
        (4, affine(&[1.0; 4], None, HUGE)),
        (5, affine(&[1.0; 5], None, 1)),
    ] {
        assert!(layer_norm(&bytes, length, scale, affine, 0.1, scale, &mut output).is_err());
        let reals = layer_norm_reals(&[0.0; 12], length, affine, 0.1, &mut [0.0; 12]);
        assert!(reals.is_err());
    }
    assert!(softmax_reals(&[0.0; 12], 5, &mut [0.0; 12]).is_err());
    assert!(softmax_reals(&[0.0; 12], 4, &mut [0.0; 8]).is_err());
    assert!(permute(&bytes, &[3, 4], &[0, 0], &mut output).is_err());
    assert!(permute(&bytes, &[3, 4], &[0, 2], &mut output).is_err());
    assert!(permute(&bytes, &[3, 5], &[1, 0], &mut output).is_err());
    assert!(permute(&bytes, &[HUGE, HUGE], &[1, 0], &mut output).is_err());
    assert!(permute(&bytes, &[HUGE, HUGE, 0], &[1, 0, 2], &mut output).is_err());
    assert!(select(&bytes, &[12], &[vec![Some(12)]], 0, &mut output).is_err());
    assert!(select(&bytes, &[12], &[vec![None; 13]], 0, &mut output).is_err());
    assert!(padded(4, HUGE, HUGE, Padding::Edge).is_err());
    assert!(depth_to_space(&bytes, [1, 1, 12], 5, BlockOrder::BlockFirst, &mut output).is_err());
    assert!(depth_to_space(&bytes, [1, 1, 12], 0, BlockOrder::BlockFirst, &mut output).is_err());
    assert!(space_to_depth(&bytes, [3, 4, 1], 2, &mut output).is_err());
    assert!(resize_nearest(&image(&bytes, 3, 4, 1), &[3], &[0], &mut output).is_err());
    assert!(copy_rows(&bytes, 4, [3, 5], None, &mut output, 5).is_err());
    assert!(to_channels_first(&bytes, 3, [4, 4], &mut output).is_err());
    let weights = BlockwiseMatrix {
        bits: 3,
        block: 16,
        depth: 16,
        columns: 1,
        integers: &bytes,
        scales: &[1.0],
        zero_points: ZeroPoints::Middle,
    };
    for weights in [
        weights,
        BlockwiseMatrix {
            bits: 4,
            block: 0,
            ..weights
        },
        BlockwiseMatrix {
            bits: 4,
            block: 32,
            ..weights
        },
        BlockwiseMatrix {
            bits: 4,
            columns: 2,
            ..weights
        },
        BlockwiseMatrix {
            bits: 4,
            depth: HUGE,
            ..weights
        },
        BlockwiseMatrix {
            bits: 4,
            zero_points: ZeroPoints::Packed(&[]),
            ..weights
        },
    ] {
        assert!(BlockWeights::pack(&weights).is_err(), "{weights:?}");
    }
    let good = BlockwiseMatrix { bits: 4, ..weights };
    let packed = BlockWeights::pack(&good).expect("a good shape");
    let mut sums = [0.0; 16];
    for (rows, tiles, length) in [
        (&[0.0; 32][..15], 0..1, 8),
        (&[0.0; 32], 0..1, 15),
        (&[0.0; 32], 0..2, 16),
        (&[0.0; 32], HUGE..HUGE, 0),
        (&[0.0; 32], 0..HUGE, 16),
    ] {
        assert!(block_gemm(rows, &packed, tiles, &mut sums[..length]).is_err());
    }
    for (columns, tiles, output) in [(1, 8, 2), (2, 16, 3), (HUGE, 16, 1), (0, 0, 1), (9, 16, 18)] {
        assert!(rows_of_tiles(&[0.0; 16][..tiles], columns, &mut [0.0; 18][..output]).is_err());
    }
}

#[test]
fn an_error_names_the_argument_and_its_limit() {
    let (bytes, mut output) = ([1u8; 12], [0u8; 12]);
    let repeated = permute(&bytes, &[3, 4], &[0, 0], &mut output);
    assert_eq!(repeated, Err(Error::RepeatedAxis(0)));
    let outside = select(&bytes, &[12], &[vec![Some(12)]], 0, &mut output).unwrap_err();
    assert_eq!(outside.to_string(), "a selection: 12 is not below 12");
    let bits = BlockwiseMatrix {
        bits: 3,
        block: 16,
        depth: 16,
        columns: 1,
        integers: &bytes,
        scales: &[1.0],
        zero_points: ZeroPoints::Middle,
    };
    assert_eq!(BlockWeights::pack(&bits).err(), Some(Error::Bits(3)));
    let grid = Int16Grid {
        scale: 1.0,
        zero_point: 0,
        low: 0,
        high: u16::MAX,
    };
    let table = WideTable::new(grid, vec![0u8; 3]);
    assert!(matches!(
        table.err(),
        Some(Error::Mismatch { actual: 3, .. })
    ));
}
