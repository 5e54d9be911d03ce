//! Matrix products.

use octet_kernels::int8::{
    BlockWeights, BlockwiseMatrix, Isa, Output, Rows, WeightLayout, Weights, ZeroPoints, gemm,
    gemm_columns, reference, rows_of_tiles,
};

use super::{Random, outputs};

/// A GEMM case.
#[derive(Clone, Debug)]
pub struct Gemm {
    /// Rows, depth, columns.
    pub sizes: [usize; 3],
    /// Gaps between rows of the activations, and of the output.
    pub gaps: [usize; 2],
    /// Kind of weights.
    pub kind: usize,
    /// True if the weights have zero points.
    pub zero_points: bool,
    /// Seed of the data.
    pub seed: u64,
}

impl Gemm {
    /// Generates a case; natively proptest does.
    #[cfg(target_family = "wasm")]
    pub fn random(random: &mut Random) -> Gemm {
        Gemm {
            // A single row has a kernel of its own.
            sizes: [
                if random.coin() {
                    1
                } else {
                    random.within(0, 37)
                },
                random.within(1, 70),
                random.within(0, 80),
            ],
            gaps: [random.within(0, 9), random.within(0, 9)],
            kind: random.within(0, 3),
            zero_points: random.coin(),
            seed: random.0,
        }
    }

    /// Compares every ISA with the reference.
    pub fn check(&self) {
        let mut random = Random(self.seed);
        let [count, depth, columns] = self.sizes;
        let stride = depth + self.gaps[0];
        let activations = random.bytes(count * stride);
        let values = random.weights(depth * columns, self.kind);
        let layout =
            [WeightLayout::ColumnAfterColumn, WeightLayout::DepthFirst][random.within(0, 1)];
        let zeros = if self.zero_points {
            random.weights(columns, 0)
        } else {
            Vec::new()
        };
        let biases = random.biases(columns);
        let bias = random.coin().then_some(&biases[..]);
        let rows = Rows {
            values: &activations,
            count,
            stride,
            zero_point: random.bits() as u8,
        };
        let shape = [count, columns, self.gaps[1]];
        let expected = outputs(&mut random.clone(), shape, |output| {
            reference::gemm(
                &rows,
                &values,
                layout,
                [depth, columns],
                &zeros,
                bias,
                output,
            )
        });
        for isa in Isa::available() {
            let weights = Weights::pack(isa, &values, layout, [depth, columns], &zeros)
                .expect("a good shape");
            let actual = outputs(&mut random.clone(), shape, |output| {
                gemm(&rows, &weights, bias, output)
            });
            assert!(
                actual == expected,
                "{isa} (ran as {}) {self:?}",
                weights.form()
            );
            Self::check_columns(&rows, &weights, bias, &mut random.clone());
        }
    }

    /// Computes some columns separately and compares them with those of the whole product.
    fn check_columns(rows: &Rows, weights: &Weights, bias: Option<&[i32]>, random: &mut Random) {
        let all = weights.columns();
        let together = weights.columns_together();
        let first = random.within(0, all / together) * together;
        let columns = first..random.within(first, all);
        let sums = |columns: core::ops::Range<usize>| {
            let stride = columns.len();
            let mut values = vec![0; rows.count * stride];
            let bias = bias.map(|bias| &bias[columns.clone()]);
            let output = Output::Accumulators {
                values: &mut values,
                stride,
            };
            gemm_columns(rows, weights, columns, bias, output).expect("good columns");
            values
        };
        let (whole, part) = (sums(0..all), sums(columns.clone()));
        for (whole, part) in whole
            .chunks(all.max(1))
            .zip(part.chunks(columns.len().max(1)))
        {
            assert_eq!(
                &whole[columns.clone()],
                part,
                "{columns:?} {}",
                weights.form()
            );
        }
    }
}

/// Compares a block-wise quantized product with its definition in f64.
pub fn block_gemm(random: &mut Random) {
    let bits = [2, 4, 8][random.within(0, 2)];
    let block = [16, 32, 64][random.within(0, 2)];
    let (count, depth, columns) = (
        random.within(1, 9),
        random.within(1, 700),
        random.within(1, 21),
    );
    let per_column = depth.div_ceil(block);
    let integers = random.bytes(columns * per_column * block * bits / 8);
    let scales = random.floats(columns * per_column, 0.1);
    let zero_bytes = (per_column * bits).div_ceil(8);
    let packed = random.bytes(columns * zero_bytes);
    let floats = random.floats(columns * per_column, 9.0);
    let kind = random.within(0, 2);
    let weights = BlockwiseMatrix {
        bits,
        block,
        depth,
        columns,
        integers: &integers,
        scales: &scales,
        zero_points: match kind {
            0 => ZeroPoints::Middle,
            1 => ZeroPoints::Packed(&packed),
            _ => ZeroPoints::Floats(&floats),
        },
    };
    let rows = random.floats(count * depth, 3.0);
    let weights = BlockWeights::pack(&weights).expect("a good shape");
    // In two parts, as two threads compute it.
    let cut = random.within(0, weights.tiles());
    let mut tiles = vec![0.0; count * 8 * weights.tiles()];
    let (left, right) = tiles.split_at_mut(count * 8 * cut);
    octet_kernels::int8::block_gemm(&rows, &weights, 0..cut, left).expect("a good shape");
    let rest = cut..weights.tiles();
    octet_kernels::int8::block_gemm(&rows, &weights, rest, right).expect("a good shape");
    let mut output = vec![0.0; count * columns];
    rows_of_tiles(&tiles, columns, &mut output).expect("a good shape");
    let field = |bytes: &[u8], at: usize| {
        (bytes[at * bits / 8] >> (at * bits % 8)) as usize & ((1 << bits) - 1)
    };
    for (row, column) in (0..count).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let (mut sum, mut size) = (0.0f64, 1e-6f64);
        for at in 0..depth {
            let number = column * per_column + at / block;
            let zero = match kind {
                0 => f64::from(1 << (bits - 1)),
                1 => field(&packed[column * zero_bytes..], at / block) as f64,
                _ => f64::from(floats[number]),
            };
            let weight = field(&integers[number * block * bits / 8..], at % block) as f64 - zero;
            let product = f64::from(rows[row * depth + at]) * weight * f64::from(scales[number]);
            sum += product;
            size += product.abs();
        }
        let actual = f64::from(output[row * columns + column]);
        assert!(
            (actual - sum).abs() <= size * 1e-5,
            "{actual} for {sum}: {bits} bits, block {block}"
        );
    }
}
