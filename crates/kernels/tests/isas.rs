//! Every ISA returns the integers of the reference, for any shape.
#![cfg(not(target_family = "wasm"))]

mod checks;

use checks::{Gemm, Random, Windowed};
use octet_kernels::int8::{ConvAlgorithm, Window};
use proptest::prelude::*;

fn gemms() -> impl Strategy<Value = Gemm> {
    let sizes = [0..40usize, 1..80, 0..40];
    (
        sizes,
        [0..9usize, 0..9],
        0..4usize,
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(|(sizes, gaps, kind, zero_points, seed)| Gemm {
            sizes,
            gaps,
            kind,
            zero_points,
            seed,
        })
}

fn windowed() -> impl Strategy<Value = Windowed> {
    let window = (
        [1..5usize, 1..5],
        [1..4usize, 1..4],
        [1..4usize, 1..4],
        [0..4usize, 0..4, 0..4, 0..4],
    );
    let window = window.prop_map(|(kernel, strides, dilations, pads)| Window {
        kernel,
        strides,
        dilations,
        pads,
    });
    let rest = (
        [1..4usize, 1..10, 1..12],
        [0..6usize, 0..6],
        0..4usize,
        any::<bool>(),
        any::<u64>(),
    );
    ([1..12usize, 1..12], window, rest).prop_map(
        |(size, window, (channels, gaps, kind, zero_points, seed))| Windowed {
            size,
            window,
            channels,
            gaps,
            kind,
            zero_points,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gemm_is_equal_on_every_isa(case in gemms()) {
        case.check();
    }

    #[test]
    fn convolution_is_equal_on_every_isa(case in windowed()) {
        case.check_conv();
    }

    #[test]
    fn winograd_is_equal_to_the_reference(case in windowed()) {
        case.check_winograd();
    }

    #[test]
    fn depthwise_convolution_is_equal_on_every_isa(case in windowed()) {
        case.check_depthwise();
    }

    #[test]
    fn transposed_convolution_is_equal_on_every_isa(case in windowed()) {
        case.check_transposed();
    }

    #[test]
    fn elementwise_kernels_follow_the_definition(seed: u64) {
        checks::elementwise(&mut Random(seed));
    }

    #[test]
    fn data_movement_and_normalization_follow_the_definition(seed: u64) {
        checks::layouts(&mut Random(seed));
    }

    #[test]
    fn blockwise_gemm_follows_the_definition(seed: u64) {
        checks::block_gemm(&mut Random(seed));
    }
}

#[test]
fn long_sums_and_many_rows_are_equal_on_every_isa() {
    for sizes in [[300, 5, 9], [70, 1000, 17], [9, 3000, 8], [1, 511, 130]] {
        for kind in 0..4 {
            let (gaps, seed) = ([3, 1], kind as u64);
            Gemm {
                sizes,
                gaps,
                kind,
                zero_points: kind == 2,
                seed,
            }
            .check();
        }
    }
}

#[test]
fn winograd_falls_back_to_im2col_if_sums_could_overflow() {
    // 2²⁵ / 255 in whole weights of 127, of which each channel has nine.
    let most = 131_586 / 127;
    for (channels, algorithm) in [
        (most / 9, ConvAlgorithm::Winograd),
        (most / 9 + 1, ConvAlgorithm::Gathered),
    ] {
        for weight in [127, -127] {
            let case = Windowed {
                size: [4, 4],
                window: Window::of([3, 3]),
                channels: [1, channels, 1],
                gaps: [0, 0],
                kind: 0,
                zero_points: false,
                seed: 0,
            };
            case.check_extremes(weight, algorithm);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn large_depthwise_convolution_is_equal_on_every_isa(case in windowed()) {
        case.check_wide_depthwise();
    }
}
