//! Every form gives the integers of the plain one, whatever the shape.
#![cfg(not(target_family = "wasm"))]

mod checks;

use checks::{Gemm, Random, Windowed};
use octet_kernels::int8::{Way, Window};
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
    fn a_gemm_is_the_same_in_every_form(case in gemms()) {
        case.check();
    }

    #[test]
    fn a_convolution_is_the_same_in_every_form(case in windowed()) {
        case.check_conv();
    }

    #[test]
    fn fewer_products_give_the_same(case in windowed()) {
        case.check_winograd();
    }

    #[test]
    fn a_depthwise_convolution_is_the_same_in_every_form(case in windowed()) {
        case.check_depthwise();
    }

    #[test]
    fn a_transposed_convolution_is_the_same_in_every_form(case in windowed()) {
        case.check_transposed();
    }

    #[test]
    fn values_one_by_one_follow_the_definition(seed: u64) {
        checks::elementwise(&mut Random(seed));
    }

    #[test]
    fn moves_and_normalizations_follow_the_definition(seed: u64) {
        checks::layouts(&mut Random(seed));
    }

    #[test]
    fn weights_in_blocks_follow_the_definition(seed: u64) {
        checks::block_gemm(&mut Random(seed));
    }
}

#[test]
fn long_sums_and_many_rows_are_the_same_in_every_form() {
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
fn weights_whose_sums_are_too_large_for_tiles_are_gathered() {
    // 2²⁵ / 255 in whole weights of 127, a ninth of them a channel.
    let most = 131_586 / 127;
    for (channels, way) in [(most / 9, Way::Winograd), (most / 9 + 1, Way::Gathered)] {
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
            case.check_extremes(weight, way);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_is_one_of_larger_kernels_and_images(case in windowed()) {
        case.check_wide_depthwise();
    }
}
