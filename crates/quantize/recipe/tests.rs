use super::blocks::{BlocksRecipe, MatrixLayout};
use super::{MEMORY, Recipe, RecipeError, run_in_memory};
use crate::blocks::{BlockMethod, BlockSettings, packed};
use octet_kernels::block_weights::{block_grid, block_integers};
use octet_onnx::schema::DataType;

fn numbers(count: usize) -> Vec<f32> {
    let mut state = 7u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| random() + random() * random()).collect()
}

/// The outputs of a matrix, column by column.
fn reference(
    values: &[f32],
    matrix: MatrixLayout,
    settings: &BlockSettings,
    [source, scales]: [DataType; 2],
) -> Vec<Vec<u8>> {
    let (levels, method) = (settings.levels(), settings.grid_method());
    let mut outputs = vec![Vec::new(); 3];
    for column in 0..matrix.columns {
        let at = |row: usize| match matrix.transposed {
            true => values[column * matrix.rows + row],
            false => values[row * matrix.columns + column],
        };
        let column: Vec<f32> = (0..matrix.rows).map(at).collect();
        let mut zero_points = Vec::new();
        for block in column.chunks(settings.size) {
            let grid = block_grid(block, levels, method, settings.scale_rounding(source));
            let mut integers = vec![0; settings.size];
            block_integers(block, grid, levels, method, &mut integers);
            outputs[0].extend(packed(&integers, settings.bits));
            outputs[1].extend(scales.bytes_of([grid.scale].into_iter()));
            match settings.method {
                BlockMethod::Hqq => {
                    outputs[2].extend(scales.bytes_of([grid.zero_point].into_iter()))
                }
                _ => zero_points.push(grid.zero_point as u8),
            }
        }
        let in_byte = usize::from(8 / settings.bits);
        zero_points.resize(zero_points.len().next_multiple_of(in_byte), levels.middle());
        outputs[2].extend(packed(&zero_points, settings.bits));
    }
    if settings.is_symmetric() {
        outputs.pop();
    }
    outputs
}

#[test]
fn tiles_slices_and_the_order_of_the_source_do_not_change_the_bytes() {
    let (rows, columns) = (100, 75);
    let values = numbers(rows * columns);
    for (bits, size, method, symmetric) in [
        (4, 32, BlockMethod::Rtn, None),
        (4, 16, BlockMethod::Rtn, Some(false)),
        (2, 16, BlockMethod::Hqq, None),
        (8, 64, BlockMethod::Search, Some(false)),
        (2, 128, BlockMethod::Search, None),
        (4, 32, BlockMethod::KQuant, None),
    ] {
        let settings = BlockSettings {
            bits,
            size,
            method,
            symmetric,
            ..BlockSettings::default()
        };
        for transposed in [false, true] {
            let matrix = MatrixLayout {
                rows,
                columns,
                transposed,
            };
            for (source, scales) in [
                (DataType::Float, DataType::Float),
                (DataType::Float16, DataType::Float16),
                (DataType::Bfloat16, DataType::Bfloat16),
                (DataType::Float, DataType::Float16),
            ] {
                let bytes = source.bytes_of(values.iter().copied());
                let rounded = source.floats(&bytes);
                let wanted = reference(&rounded, matrix, &settings, [source, scales]);
                for memory in [0, 60_000, MEMORY] {
                    let mut recipe =
                        BlocksRecipe::within(memory, matrix, source, &settings, scales);
                    let sizes: Vec<u64> = recipe.outputs().iter().map(|o| o.bytes).collect();
                    let outputs = run_in_memory(&mut recipe, &bytes).unwrap();
                    let lengths: Vec<u64> = outputs.iter().map(|o| o.len() as u64).collect();
                    assert_eq!(sizes, lengths);
                    assert!(
                        outputs == wanted,
                        "{settings:?} {transposed} {source:?} {scales:?} {memory}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_stretch_is_emitted_once_and_passes_are_counted() {
    let matrix = MatrixLayout {
        rows: 64,
        columns: 40,
        transposed: false,
    };
    let settings = BlockSettings::default();
    let mut recipe = BlocksRecipe::within(0, matrix, DataType::Float, &settings, DataType::Float);
    let bytes = DataType::Float.bytes_of(numbers(64 * 40).into_iter());
    // Tiles of 16 columns: three passes.
    assert_eq!(recipe.slices().total(), 3 * bytes.len() as u64);
    let mut emitted = vec![Vec::new(); 2];
    let mut read = 0;
    while let Some(range) = recipe.next() {
        read += range.end - range.start;
        let slice = &bytes[range.start as usize..range.end as usize];
        recipe
            .feed(slice, &mut |one| {
                emitted[one.output].push(one.offset..one.offset + one.bytes.len() as u64);
            })
            .unwrap();
    }
    assert_eq!(read, recipe.slices().total());
    for (stretches, output) in emitted.iter().zip(recipe.outputs()) {
        let ends: Vec<u64> = stretches.iter().map(|s| s.end).collect();
        let starts: Vec<u64> = stretches.iter().map(|s| s.start).collect();
        assert_eq!(starts[0], 0);
        assert_eq!(starts[1..], ends[..ends.len() - 1]);
        assert_eq!(ends.last(), Some(&output.bytes));
    }
}

#[test]
fn numbers_without_an_integer_are_an_error() {
    let matrix = MatrixLayout {
        rows: 32,
        columns: 2,
        transposed: true,
    };
    let settings = BlockSettings::default();
    let run = |value: f32, scales| {
        let mut values = vec![0.5; 64];
        values[40] = value;
        let bytes = DataType::Float.bytes_of(values.into_iter());
        let mut recipe = BlocksRecipe::new(matrix, DataType::Float, &settings, scales);
        run_in_memory(&mut recipe, &bytes).map(|_| ())
    };
    assert_eq!(run(1.0, DataType::Float), Ok(()));
    for value in [f32::NAN, f32::INFINITY] {
        assert_eq!(run(value, DataType::Float), Err(RecipeError::NotFinite));
    }
    let half = DataType::Float16;
    assert_eq!(run(1e7, half), Err(RecipeError::Scale(half)));
}
