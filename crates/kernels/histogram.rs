//! Histogram counting: values into bins of equal width.

use crate::dispatch::vectorized;
use crate::extrema::{Extrema, ExtremaScan};

/// Adds the values to a histogram of bins `width` wide. Bin `zero` covers `[0, width)`.
///
/// The width is a power of two. The width, its inverse and all bin edges are normal f32s. Every
/// value is finite and falls into a bin; any other value may be counted anywhere. Counts stay below
/// 2^32. Histograms of 2048 and 4096 bins take a vectorized loop.
pub fn count(counts: &mut [u32], values: &[f32], width: f32, zero: usize) {
    match counts.len() {
        2048 => {
            vectorized!(count_into::<2048>(
                counts,
                values,
                width,
                zero as i32,
                &mut NoVisitor
            ))
        }
        4096 => {
            vectorized!(count_into::<4096>(
                counts,
                values,
                width,
                zero as i32,
                &mut NoVisitor
            ))
        }
        _ => {
            for &value in values {
                let at = bin_any(value, 1.0 / width, width) as i64 + zero as i64;
                if let Some(count) = usize::try_from(at).ok().and_then(|at| counts.get_mut(at)) {
                    *count += 1;
                }
            }
        }
    }
}

/// Adds the values to a histogram as [`count`] does and returns their extrema, in one pass.
///
/// Returns `None` and counts nothing if a value is not finite or falls outside all bins.
pub fn count_within(
    counts: &mut [u32],
    values: &[f32],
    width: f32,
    zero: usize,
) -> Option<Extrema> {
    let bins = counts.len();
    let (low, high) = (-(zero as f32) * width, (bins - zero) as f32 * width);
    let within = |extrema: &Extrema| {
        let [least, greatest, _] = extrema.reach;
        extrema.all_finite && (values.is_empty() || (least >= low && greatest < high))
    };
    if values.len() >= TABLES * bins && (bins == 2048 || bins == 4096) {
        let mut tracker = ExtremaVisitor {
            scan: ExtremaScan::default(),
            within,
        };
        let visitor = &mut tracker;
        match bins {
            2048 => vectorized!(count_into::<2048>(
                counts,
                values,
                width,
                zero as i32,
                visitor
            )),
            _ => vectorized!(count_into::<4096>(
                counts,
                values,
                width,
                zero as i32,
                visitor
            )),
        }
        return Some(tracker.scan.extrema()).filter(within);
    }
    let extrema = Extrema::of(values);
    within(&extrema).then(|| {
        count(counts, values, width, zero);
        extrema
    })
}

/// Receives the values in the same pass that counts them.
trait Visitor {
    fn visit(&mut self, values: &[f32]);

    /// Returns true if the counts are added to the histogram.
    fn accepts(&self) -> bool;
}

/// Ignores the values and keeps all counts.
struct NoVisitor;

impl Visitor for NoVisitor {
    fn visit(&mut self, _: &[f32]) {}

    fn accepts(&self) -> bool {
        true
    }
}

/// Tracks extrema and keeps the counts only if these satisfy a condition. Uses fewer lanes than
/// [`Extrema::of`], because counting occupies registers too.
struct ExtremaVisitor<F> {
    scan: ExtremaScan<8>,
    within: F,
}

impl<F: Fn(&Extrema) -> bool> Visitor for ExtremaVisitor<F> {
    #[inline(always)]
    fn visit(&mut self, values: &[f32]) {
        self.scan.add(values);
    }

    fn accepts(&self) -> bool {
        (self.within)(&self.scan.extrema())
    }
}

#[inline(always)]
fn count_into<const SIZE: usize>(
    counts: &mut [u32],
    values: &[f32],
    width: f32,
    zero: i32,
    visitor: &mut impl Visitor,
) {
    let inverse_width = 1.0 / width;
    if width <= 1.0 {
        count_in_tables::<SIZE>(counts, values, visitor, |value| {
            bin_small(value, inverse_width) + zero
        });
    } else {
        count_in_tables::<SIZE>(counts, values, visitor, |value| {
            bin_any(value, inverse_width, width) + zero
        });
    }
}

/// Returns the bin of a value inside the histogram, for bins at most 1 wide.
///
/// Both variants return the same bin. Each is the one that the target's compiler vectorizes.
fn bin_small(value: f32, inverse_width: f32) -> i32 {
    if cfg!(target_family = "wasm") {
        floor_to_int(value, inverse_width)
    } else {
        bin_any(value, inverse_width, 1.0 / inverse_width)
    }
}

/// Returns the bin of a value, for an inverse width of at least 1, where the product is exact.
fn floor_to_int(value: f32, inverse_width: f32) -> i32 {
    // Between 2^23 and 2^24 one ulp of an f32 is 1. This constant is the middle of that interval.
    const MAGIC: f32 = 12_582_912.0;
    let bits = ((value * inverse_width).floor() + MAGIC).to_bits() as i32;
    bits.wrapping_sub(MAGIC.to_bits() as i32)
}

/// A bound beyond every bin and well inside i32.
const BOUND: f32 = 8_388_608.0;

/// Returns the bin of a value inside the histogram, for any width.
fn bin_any(value: f32, inverse_width: f32, width: f32) -> i32 {
    // The product is exact, or so close to zero that its magnitude is below one.
    #[expect(clippy::manual_clamp, reason = "`clamp` leaves NaN as it is")]
    let bins = (value * inverse_width).max(-BOUND).min(BOUND);
    // SAFETY: the value lies between the bounds, because `max` maps NaN to a number. (A checked
    // cast is not vectorized.)
    let whole: i32 = unsafe { bins.to_int_unchecked() };
    // The cast truncates towards zero. A negative value off the edge is one bin too high. The edge
    // is an exact f32, by the choice of the width.
    whole - i32::from(value < whole as f32 * width)
}

/// Number of tables that receive the counts in rotation.
const TABLES: usize = 4;

/// Counts values into `SIZE` bins, a power of two.
///
/// Bin indices are computed a block at a time, which vectorizes. Consecutive values go to different
/// tables. Otherwise a repeated value, such as a Relu's zeros, waits for the previous store to the
/// same counter.
#[inline(always)]
fn count_in_tables<const SIZE: usize>(
    counts: &mut [u32],
    values: &[f32],
    visitor: &mut impl Visitor,
    bin_of: impl Fn(f32) -> i32,
) {
    const BLOCK: usize = 64;
    // The index already is in 0..SIZE. The mask tells the compiler so and keeps a wrong index
    // harmless.
    let inside = |bin: i32| bin as usize & (SIZE - 1);
    if values.len() < TABLES * SIZE {
        for &value in values {
            counts[inside(bin_of(value))] += 1;
        }
        return;
    }
    let mut bins = [0i32; BLOCK];
    let mut tables = vec![[0u32; SIZE]; TABLES];
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    visitor.visit(rest);
    for &value in rest {
        tables[0][inside(bin_of(value))] += 1;
    }
    for block in blocks {
        visitor.visit(block);
        for lane in 0..BLOCK {
            bins[lane] = bin_of(block[lane]);
        }
        for group in bins.as_chunks::<TABLES>().0 {
            for (table, &at) in tables.iter_mut().zip(group) {
                table[inside(at)] += 1;
            }
        }
    }
    if !visitor.accepts() {
        return;
    }
    for table in &tables {
        for (all, &count) in counts.iter_mut().zip(table) {
            *all += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts one value after the other, by the definition.
    fn reference(size: usize, values: &[f32], width: f32, zero: usize) -> Vec<u32> {
        let mut counts = vec![0; size];
        for &value in values {
            let bin = (f64::from(value) / f64::from(width)).floor() as i64 + zero as i64;
            counts[bin as usize] += 1;
        }
        counts
    }

    #[test]
    fn all_counting_loops_match_the_reference() {
        for (size, zero, width) in [
            (2048, 0, 0.125),
            (4096, 2048, 2f32.powi(-120)),
            (4096, 2048, 8.0),
            (64, 32, 0.5),
        ] {
            let (low, high) = (-(zero as f32) * width, (size - zero) as f32 * width);
            let mut state = 7u32;
            let mut values: Vec<f32> = (0..50_000)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    low + (high - low) * (state >> 8) as f32 / (1 << 24) as f32
                })
                .filter(|&value| value < high)
                .collect();
            values.extend([0.0, -0.0, low, low + width, f32::MIN_POSITIVE, high - width]);
            if zero > 0 {
                values.extend([-f32::MIN_POSITIVE, -width, -1e-45]);
            }
            values.extend([0.0; 777]);
            let mut counts = vec![0; size];
            count(&mut counts, &values, width, zero);
            let expected = reference(size, &values, width, zero);
            assert_eq!(counts, expected, "{size} {width}");
            for few in [values.len(), 100, 0] {
                let (mut counts, values) = (vec![0; size], &values[..few]);
                let counted = count_within(&mut counts, values, width, zero).unwrap();
                assert_eq!(
                    counts,
                    reference(size, values, width, zero),
                    "{size} {width}"
                );
                let extrema = Extrema::of(values);
                assert_eq!(
                    (counted.reach, counted.zeros),
                    (extrema.reach, extrema.zeros)
                );
            }
        }
    }

    #[test]
    fn nothing_is_counted_if_a_value_is_outside_all_bins() {
        let outside = [f32::NAN, f32::INFINITY, 8.0, -8.001, 1e30];
        for (size, count) in [(4096, 20_000), (4096, 7), (64, 20_000)] {
            let width = 16.0 / size as f32;
            for index in [0, count / 2, count - 1] {
                for value in outside {
                    let mut values = vec![-8.0; count];
                    values[index] = value;
                    let mut counts = vec![3; size];
                    let counted = count_within(&mut counts, &values, width, size / 2);
                    assert!(counted.is_none(), "{value} of {count} in {size}");
                    assert!(counts.iter().all(|&count| count == 3));
                }
            }
        }
    }

    #[test]
    fn both_bin_functions_agree() {
        for inverse_width in [1.0, 64.0, 2f32.powi(126)] {
            for bin in [
                -2048.0, -3.0, -1.5, -1.0, -0.25, -0.0, 0.0, 0.75, 1.0, 2047.5,
            ] {
                let value = bin / inverse_width;
                let index = f64::from(bin).floor() as i32;
                assert_eq!(
                    floor_to_int(value, inverse_width),
                    index,
                    "{bin} {inverse_width}"
                );
                assert_eq!(
                    bin_any(value, inverse_width, 1.0 / inverse_width),
                    index,
                    "{bin} {inverse_width}"
                );
            }
            assert_eq!(floor_to_int(-1e-45, inverse_width), -1);
        }
    }

    #[test]
    fn values_outside_all_bins_do_no_harm() {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30].repeat(4000);
        for size in [16, 2048, 4096] {
            for width in [0.5, 4.0] {
                count(&mut vec![0; size], &values, width, size / 2);
            }
        }
    }
}
