//! Random demo data for trying out the tool. It says nothing about accuracy, and every result made
//! with it must be marked.

use std::collections::BTreeMap;

use super::error::SampleError;
use super::placeholder::open_size_of;
use super::{InputSpec, LARGEST_ARRAY};
use octet_graph::Dim;
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;

/// Sample `index` of the demo data with this seed; the same on all platforms.
///
/// Floats are approximately normal (mean 0, deviation 1), like normalized data. Integers are small
/// enough for any vocabulary, and below the row count in `tables` if the input indexes a table.
/// Masks are all ones. An open batch size is 1, an open image side 224, an open length 16,
/// that of sound 512.
pub fn synthetic(
    inputs: &[InputSpec],
    tables: &BTreeMap<String, u64>,
    seed: u64,
    index: u64,
) -> Result<Vec<Tensor>, SampleError> {
    let mut random = SplitMix64(seed ^ index.wrapping_mul(0xd134_2543_de82_ef95));
    let mut sizes = BTreeMap::new();
    inputs
        .iter()
        .map(|input| {
            let rows = tables.get(&input.name).copied();
            one(input, rows, &mut random, &mut sizes)
        })
        .collect()
}

fn one<'a>(
    input: &'a InputSpec,
    rows: Option<u64>,
    random: &mut SplitMix64,
    sizes: &mut BTreeMap<&'a str, usize>,
) -> Result<Tensor, SampleError> {
    let refused = || SampleError::Synthetic {
        input: input.name.clone(),
        expected: input.element,
    };
    let open = |axis: usize| open_size_of(input, axis);
    let shape: Vec<usize> = input
        .shape
        .iter()
        .enumerate()
        .map(|(axis, dim)| match dim {
            Dim::Known(n) => *n,
            Dim::Named(name) => *sizes.entry(name).or_insert(open(axis)),
            Dim::Unknown => open(axis),
        })
        .collect();
    let count = shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .ok_or_else(refused)?;
    if count as u64 > LARGEST_ARRAY / 8 {
        return Err(refused());
    }
    let mask = input.name.to_ascii_lowercase().contains("mask");
    let rows = rows.unwrap_or(u64::MAX).max(1);
    let mut whole = || match mask {
        true => 1.min(rows - 1),
        false => (random.next() >> 57) % rows,
    };
    let values = match input.element {
        float if float == DataType::Float || float.is_half() => {
            Values::F32((0..count).map(|_| float.rounded(random.normal())).collect())
        }
        DataType::Double => Values::F64((0..count).map(|_| random.normal().into()).collect()),
        DataType::Int8 => Values::I8((0..count).map(|_| whole() as i8).collect()),
        DataType::Int16 => Values::I16((0..count).map(|_| whole() as i16).collect()),
        DataType::Int32 => Values::I32((0..count).map(|_| whole() as i32).collect()),
        DataType::Int64 => Values::I64((0..count).map(|_| whole() as i64).collect()),
        DataType::Uint8 => Values::U8((0..count).map(|_| (random.next() >> 56) as u8).collect()),
        DataType::Uint16 => Values::U16((0..count).map(|_| whole() as u16).collect()),
        DataType::Uint32 => Values::U32((0..count).map(|_| whole() as u32).collect()),
        DataType::Uint64 => Values::U64((0..count).map(|_| whole()).collect()),
        DataType::Bool => Values::Bool(
            (0..count)
                .map(|_| mask || random.next() >> 63 == 1)
                .collect(),
        ),
        _ => return Err(refused()),
    };
    Tensor::new(shape, values).ok_or_else(refused)
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        b ^ (b >> 31)
    }

    /// Approximately normal: the sum of four 16-bit uniforms, centred, divided by its deviation. It
    /// avoids logarithms, which differ between platforms.
    fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum: i64 = (0..4).map(|i| ((bits >> (16 * i)) & 0xffff) as i64).sum();
        // Each has variance 2^32 / 12, their sum 2^32 / 3.
        ((sum - 2 * 0xffff) as f64 / (65536.0 / 3f64.sqrt())) as f32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn input(name: &str, element: DataType, shape: Vec<Dim>) -> InputSpec {
        InputSpec {
            name: name.into(),
            element,
            shape,
        }
    }

    #[test]
    fn demo_data_repeats_and_differs_by_sample() {
        let inputs = [input(
            "x",
            DataType::Float,
            vec![
                Dim::Named("n".into()),
                Dim::Known(3),
                Dim::Unknown,
                Dim::Unknown,
            ],
        )];
        let generated = |index| synthetic(&inputs, &BTreeMap::new(), 1, index).unwrap();
        assert_eq!(generated(0), generated(0));
        assert_ne!(generated(0), generated(1));
        let generated = generated(0);
        assert_eq!(generated[0].shape(), [1, 3, 224, 224]);
        let seen = super::super::describe(&generated[0]);
        assert!(
            seen.mean.unwrap().abs() < 0.01 && (seen.std.unwrap() - 1.0).abs() < 0.01,
            "{seen:?}"
        );
    }

    #[test]
    fn a_named_size_is_the_same_in_every_input_and_masks_are_ones() {
        let dims = || vec![Dim::Named("batch".into()), Dim::Named("length".into())];
        let inputs = [
            input("ids", DataType::Int64, dims()),
            input("attention_mask", DataType::Int64, dims()),
        ];
        let generated = synthetic(&inputs, &BTreeMap::new(), 7, 3).unwrap();
        assert_eq!(generated[0].shape(), generated[1].shape());
        assert_eq!(generated[1].values(), &Values::I64(vec![1; 16]));
    }

    #[test]
    fn table_indices_are_below_the_row_count() {
        let inputs = [input("kinds", DataType::Int64, vec![Dim::Known(500)])];
        let tables = BTreeMap::from([("kinds".to_string(), 3)]);
        let generated = synthetic(&inputs, &tables, 7, 3).unwrap();
        let Values::I64(places) = generated[0].values() else {
            panic!("{:?}", generated[0].element_type())
        };
        assert_eq!(
            places.iter().collect::<BTreeSet<_>>(),
            BTreeSet::from([&0, &1, &2])
        );
    }

    #[test]
    fn an_input_without_demo_data_is_named() {
        let inputs = [input("s", DataType::String, vec![])];
        let text = synthetic(&inputs, &BTreeMap::new(), 0, 0)
            .unwrap_err()
            .to_string();
        assert!(text.contains("\"s\"") && text.contains("string"), "{text}");
    }
}
