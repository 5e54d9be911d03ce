//! Counting values into bins of equal width.

use crate::ends::{Ends, Look};
use crate::vectors::in_vectors;

/// Counts finite values into bins that are `width` wide, of which the one at `zero` begins at 0.
///
/// The width is a power of two; it, its inverse and the edges of all bins are normal f32s, and every value is
/// in one of the bins. (A value that is in none, or no number, may be counted anywhere.) The counts stay below 2^32. 2048 and
/// 4096 bins are fast.
pub fn count(counts: &mut [u32], values: &[f32], width: f32, zero: usize) {
    match counts.len() {
        2048 => in_vectors(|| count_into::<2048>(counts, values, width, zero as i32, &mut Blind)),
        4096 => in_vectors(|| count_into::<4096>(counts, values, width, zero as i32, &mut Blind)),
        _ => {
            for &value in values {
                let at = place_in_any(value, 1.0 / width, width) as i64 + zero as i64;
                if let Some(count) = usize::try_from(at).ok().and_then(|at| counts.get_mut(at)) {
                    *count += 1;
                }
            }
        }
    }
}

/// Counts values as [`count`] does and tells their ends, both in one look at them. `None`, and nothing counted, where one of
/// them is in none of the bins or is not finite.
pub fn count_within(counts: &mut [u32], values: &[f32], width: f32, zero: usize) -> Option<Ends> {
    let bins = counts.len();
    let (low, high) = (-(zero as f32) * width, (bins - zero) as f32 * width);
    let within = |ends: &Ends| {
        let [least, greatest, _] = ends.reach;
        ends.all_finite && (values.is_empty() || (least >= low && greatest < high))
    };
    if values.len() >= TABLES * bins && (bins == 2048 || bins == 4096) {
        let mut seeing = Seeing {
            look: Look::default(),
            within,
        };
        let see = &mut seeing;
        match bins {
            2048 => in_vectors(|| count_into::<2048>(counts, values, width, zero as i32, see)),
            _ => in_vectors(|| count_into::<4096>(counts, values, width, zero as i32, see)),
        }
        return Some(seeing.look.ends()).filter(within);
    }
    let ends = Ends::of(values);
    within(&ends).then(|| {
        count(counts, values, width, zero);
        ends
    })
}

/// What is looked at while values are counted.
trait See {
    fn see(&mut self, values: &[f32]);

    /// Whether what was counted is to be kept.
    fn keep(&self) -> bool;
}

/// Nothing.
struct Blind;

impl See for Blind {
    fn see(&mut self, _: &[f32]) {}

    fn keep(&self) -> bool {
        true
    }
}

/// The ends, of which the counts hang on. Fewer lanes than by itself, since counting wants registers, too.
struct Seeing<F> {
    look: Look<8>,
    within: F,
}

impl<F: Fn(&Ends) -> bool> See for Seeing<F> {
    #[inline(always)]
    fn see(&mut self, values: &[f32]) {
        self.look.take(values);
    }

    fn keep(&self) -> bool {
        (self.within)(&self.look.ends())
    }
}

#[inline(always)]
fn count_into<const SIZE: usize>(
    counts: &mut [u32],
    values: &[f32],
    width: f32,
    zero: i32,
    see: &mut impl See,
) {
    let per_width = 1.0 / width;
    if width <= 1.0 {
        in_turns::<SIZE>(counts, values, see, |value| {
            place_in_small(value, per_width) + zero
        });
    } else {
        in_turns::<SIZE>(counts, values, see, |value| {
            place_in_any(value, per_width, width) + zero
        });
    }
}

/// The bin of a value, in bins at most 1 wide that hold it.
///
/// Both forms give the same; each is the one its compiler turns into vector code.
fn place_in_small(value: f32, per_width: f32) -> i32 {
    if cfg!(target_family = "wasm") {
        rounded_down(value, per_width)
    } else {
        place_in_any(value, per_width, 1.0 / per_width)
    }
}

/// The bin of a value, for an inverse width of at least 1: the product is exact then.
fn rounded_down(value: f32, per_width: f32) -> i32 {
    // Between 2^23 and 2^24 the last bit of an f32 is worth one, and this is halfway.
    const MAGIC: f32 = 12_582_912.0;
    let bits = ((value * per_width).floor() + MAGIC).to_bits() as i32;
    bits.wrapping_sub(MAGIC.to_bits() as i32)
}

/// Further from zero than any bin, and well inside i32.
const FAR: f32 = 8_388_608.0;

/// The bin of a value, in bins that hold it.
fn place_in_any(value: f32, per_width: f32, width: f32) -> i32 {
    // Exact, or so near zero that it rounds to less than one.
    #[expect(clippy::manual_clamp, reason = "`clamp` leaves NaN as it is")]
    let bins = (value * per_width).max(-FAR).min(FAR);
    // SAFETY: a number between the two, for `max` gives a number for NaN too. (A checked cast is not turned
    // into vector code.)
    let whole: i32 = unsafe { bins.to_int_unchecked() };
    // Towards zero, so one too high below zero unless on the edge, which is an f32 by the choice of the width.
    whole - i32::from(value < whole as f32 * width)
}

/// Into so many tables values are counted in turns.
const TABLES: usize = 4;

/// Counts values into `SIZE` bins, a power of two of them. The places are computed a block at a time, which
/// the compiler turns into vector code, and counted into several tables in turns: a value that comes again
/// at once (a Relu's zeros) would otherwise wait for the count before it to be stored.
#[inline(always)]
fn in_turns<const SIZE: usize>(
    counts: &mut [u32],
    values: &[f32],
    see: &mut impl See,
    place: impl Fn(f32) -> i32,
) {
    const BLOCK: usize = 64;
    // A place is in 0..SIZE already; this tells the compiler, and keeps a wrong one harmless.
    let inside = |place: i32| place as usize & (SIZE - 1);
    if values.len() < TABLES * SIZE {
        for &value in values {
            counts[inside(place(value))] += 1;
        }
        return;
    }
    let mut places = [0i32; BLOCK];
    let mut tables = vec![[0u32; SIZE]; TABLES];
    let (blocks, rest) = values.as_chunks::<BLOCK>();
    see.see(rest);
    for &value in rest {
        tables[0][inside(place(value))] += 1;
    }
    for block in blocks {
        see.see(block);
        for lane in 0..BLOCK {
            places[lane] = place(block[lane]);
        }
        for turn in places.as_chunks::<TABLES>().0 {
            for (table, &at) in tables.iter_mut().zip(turn) {
                table[inside(at)] += 1;
            }
        }
    }
    if !see.keep() {
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

    /// One by one, by the definition.
    fn slowly(size: usize, values: &[f32], width: f32, zero: usize) -> Vec<u32> {
        let mut counts = vec![0; size];
        for &value in values {
            let bin = (f64::from(value) / f64::from(width)).floor() as i64 + zero as i64;
            counts[bin as usize] += 1;
        }
        counts
    }

    #[test]
    fn all_ways_of_counting_agree() {
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
            let wanted = slowly(size, &values, width, zero);
            assert_eq!(counts, wanted, "{size} {width}");
            for few in [values.len(), 100, 0] {
                let (mut counts, values) = (vec![0; size], &values[..few]);
                let found = count_within(&mut counts, values, width, zero).unwrap();
                assert_eq!(counts, slowly(size, values, width, zero), "{size} {width}");
                let ends = Ends::of(values);
                assert_eq!((found.reach, found.zeros), (ends.reach, ends.zeros));
            }
        }
    }

    #[test]
    fn nothing_is_counted_where_one_value_is_in_no_bin() {
        let outside = [f32::NAN, f32::INFINITY, 8.0, -8.001, 1e30];
        for (size, count) in [(4096, 20_000), (4096, 7), (64, 20_000)] {
            let width = 16.0 / size as f32;
            for place in [0, count / 2, count - 1] {
                for value in outside {
                    let mut values = vec![-8.0; count];
                    values[place] = value;
                    let mut counts = vec![3; size];
                    let found = count_within(&mut counts, &values, width, size / 2);
                    assert!(found.is_none(), "{value} of {count} in {size}");
                    assert!(counts.iter().all(|&count| count == 3));
                }
            }
        }
    }

    #[test]
    fn both_forms_of_a_place_agree() {
        for per_width in [1.0, 64.0, 2f32.powi(126)] {
            for bin in [
                -2048.0, -3.0, -1.5, -1.0, -0.25, -0.0, 0.0, 0.75, 1.0, 2047.5,
            ] {
                let value = bin / per_width;
                let place = f64::from(bin).floor() as i32;
                assert_eq!(rounded_down(value, per_width), place, "{bin} {per_width}");
                assert_eq!(
                    place_in_any(value, per_width, 1.0 / per_width),
                    place,
                    "{bin} {per_width}"
                );
            }
            assert_eq!(rounded_down(-1e-45, per_width), -1);
        }
    }

    #[test]
    fn what_is_out_of_place_does_no_harm() {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30].repeat(4000);
        for size in [16, 2048, 4096] {
            for width in [0.5, 4.0] {
                count(&mut vec![0; size], &values, width, size / 2);
            }
        }
    }
}
