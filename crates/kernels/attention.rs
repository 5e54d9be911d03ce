//! One query's attention over keys and values: the scores, their softmax, and the mix of values.

use crate::dispatch::vectorized;

/// Number of partial sums of a score.
const LANES: usize = 8;

/// Vectors of `width` floats, `stride` floats apart. All of them lie in the slice.
#[derive(Clone, Copy, Debug)]
pub struct Vectors<'a> {
    floats: &'a [f32],
    stride: usize,
    width: usize,
}

impl<'a> Vectors<'a> {
    /// `None` if `count` vectors don't lie in the slice.
    pub fn new(floats: &'a [f32], stride: usize, width: usize, count: usize) -> Option<Self> {
        let last = match count.checked_sub(1) {
            Some(before) => before.checked_mul(stride)?.checked_add(width)?,
            None => 0,
        };
        (last <= floats.len()).then_some(Vectors {
            floats,
            stride,
            width,
        })
    }

    #[inline(always)]
    fn at(&self, place: usize) -> &'a [f32] {
        &self.floats[place * self.stride..][..self.width]
    }
}

/// Writes the product of the query and each key from `first` on, times `scale`.
pub fn scores(query: &[f32], keys: Vectors, first: usize, scale: f32, scores: &mut [f32]) {
    vectorized!({
        let (fours, rest) = scores.as_chunks_mut::<4>();
        let behind = first + 4 * fours.len();
        for (place, four) in fours.iter_mut().enumerate() {
            let at = first + 4 * place;
            let keys = std::array::from_fn(|next| keys.at(at + next));
            *four = dots(query, keys).map(|sum| sum * scale);
        }
        for (place, score) in rest.iter_mut().enumerate() {
            *score = dots(query, [keys.at(behind + place)])[0] * scale;
        }
    });
}

#[inline(always)]
fn dots<const COUNT: usize>(query: &[f32], keys: [&[f32]; COUNT]) -> [f32; COUNT] {
    let (chunks, rest) = query.as_chunks::<LANES>();
    let mut sums = [[0.0f32; LANES]; COUNT];
    let whole = keys.map(|key| key.as_chunks::<LANES>().0);
    for (place, chunk) in chunks.iter().enumerate() {
        for (sums, key) in sums.iter_mut().zip(&whole) {
            for lane in 0..LANES {
                sums[lane] += chunk[lane] * key[place][lane];
            }
        }
    }
    let done = chunks.len() * LANES;
    std::array::from_fn(|which| {
        let behind = rest.iter().zip(&keys[which][done..]);
        let behind: f32 = behind.map(|(a, b)| a * b).sum();
        sums[which].iter().sum::<f32>() + behind
    })
}

/// Replaces scores by their shares. A sink takes a share of its own, which nobody reads.
pub fn softmax(scores: &mut [f32], sink: Option<f32>) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let most = sink.map_or(most, |sink| most.max(sink));
    let mut sum = sink.map_or(0.0, |sink| (sink - most).exp());
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}

/// Writes the sum of the values from `first` on, each times its share.
pub fn mix(shares: &[f32], values: Vectors, first: usize, mixed: &mut [f32]) {
    vectorized!({
        mixed.fill(0.0);
        let (fours, rest) = shares.as_chunks::<4>();
        let behind = first + 4 * fours.len();
        for (place, by) in fours.iter().enumerate() {
            let at = first + 4 * place;
            let [one, two, three, four] = std::array::from_fn(|next| values.at(at + next));
            let others = two.iter().zip(three).zip(four);
            for ((sum, one), ((two, three), four)) in mixed.iter_mut().zip(one).zip(others) {
                *sum += (by[0] * one + by[1] * two) + (by[2] * three + by[3] * four);
            }
        }
        for (place, by) in rest.iter().enumerate() {
            for (sum, value) in mixed.iter_mut().zip(values.at(behind + place)) {
                *sum += by * value;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: usize) -> Vec<f32> {
        let number = |at: usize| ((at * 37 + seed * 11) % 19) as f32 / 8.0 - 1.0;
        (0..count).map(number).collect()
    }

    #[test]
    fn scores_and_mixes_match_their_definition() {
        for (width, stride, count, first) in
            [(1, 1, 1, 0), (8, 8, 4, 2), (13, 20, 7, 1), (64, 96, 9, 3)]
        {
            let (query, floats) = (numbers(width, 1), numbers(stride * (count + first), 2));
            let vectors = Vectors::new(&floats, stride, width, count + first).unwrap();
            let mut found = vec![0.0; count];
            scores(&query, vectors, first, 0.5, &mut found);
            for (place, &score) in found.iter().enumerate() {
                let key = &floats[(first + place) * stride..][..width];
                let expected: f32 = query.iter().zip(key).map(|(a, b)| a * b).sum();
                assert!((score - expected * 0.5).abs() < 1e-4, "{width} {place}");
            }
            let shares = numbers(count, 3);
            let mut mixed = vec![9.0; width];
            mix(&shares, vectors, first, &mut mixed);
            for (place, &sum) in mixed.iter().enumerate() {
                let each = shares.iter().enumerate();
                let expected = each.map(|(at, by)| by * floats[(first + at) * stride + place]);
                assert!(
                    (sum - expected.sum::<f32>()).abs() < 1e-4,
                    "{width} {place}"
                );
            }
        }
    }

    #[test]
    fn shares_add_up_with_the_sink() {
        let mut shares = [1.0, 3.0, -2.0];
        softmax(&mut shares, None);
        assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        let mut shares = [0.0, 0.0];
        softmax(&mut shares, Some(0.0));
        assert!(shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-6));
    }

    #[test]
    fn vectors_lie_in_their_slice() {
        let floats = [0.0; 10];
        assert!(Vectors::new(&floats, 4, 2, 3).is_some());
        assert!(Vectors::new(&floats, 4, 3, 3).is_none());
        assert!(Vectors::new(&floats, usize::MAX, 3, 3).is_none());
        assert!(Vectors::new(&[], 4, 3, 0).is_some());
    }
}
