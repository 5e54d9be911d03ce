//! Exact Gram matrices of integer rows.

/// Maximum length of a row. Its products sum in 32 bits if magnitudes are at most [`LARGEST`].
pub const LONGEST: usize = 512;

/// Maximum magnitude of an integer in a row.
pub const LARGEST: i16 = 2047;

/// Adds the lower triangle of the rows' Gram matrix to `sums`, row by row: r₀·r₀, r₁·r₀, r₁·r₁ and
/// so on.
///
/// Rows have `length` integers, at most [`LONGEST`], with magnitudes up to [`LARGEST`].
pub fn add_products(rows: &[i16], length: usize, sums: &mut [i64]) {
    assert!(
        length <= LONGEST,
        "rows of {length} integers may not fit 32 bits"
    );
    if length == 0 {
        return;
    }
    let mut sums = sums.iter_mut();
    for (index, row) in rows.chunks_exact(length).enumerate() {
        let before = &rows[..(index + 1) * length];
        let mut fours = before.chunks_exact(4 * length);
        for four in &mut fours {
            // The products come first in the zip: a sum taken without a product would be skipped.
            for (product, sum) in four_products(row, four).into_iter().zip(sums.by_ref()) {
                *sum += i64::from(product);
            }
        }
        let rest = fours.remainder().chunks_exact(length);
        for (other, sum) in rest.zip(sums.by_ref()) {
            *sum += i64::from(product(row, other));
        }
    }
}

/// Computes four products at once, so that `row` is read once for them.
fn four_products(row: &[i16], four: &[i16]) -> [i32; 4] {
    let (ab, cd) = four.split_at(2 * row.len());
    let ((a, b), (c, d)) = (ab.split_at(row.len()), cd.split_at(row.len()));
    let mut sums = [0; 4];
    for ((((&x, &a), &b), &c), &d) in row.iter().zip(a).zip(b).zip(c).zip(d) {
        let x = i32::from(x);
        for (sum, y) in sums.iter_mut().zip([a, b, c, d]) {
            *sum += x * i32::from(y);
        }
    }
    sums
}

fn product(row: &[i16], other: &[i16]) -> i32 {
    let pairs = row.iter().zip(other);
    pairs.map(|(&x, &y)| i32::from(x) * i32::from(y)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_rows_has_its_dot_product() {
        for (count, length) in [(1, 1), (3, 8), (4, 13), (9, 256), (13, 512)] {
            let rows: Vec<i16> = (0..count * length)
                .map(|i| (i * 7919 % 4095) as i16 - LARGEST)
                .collect();
            let mut sums = vec![5; count * (count + 1) / 2];
            add_products(&rows, length, &mut sums);
            let mut actual = sums.into_iter();
            for i in 0..count {
                for j in 0..=i {
                    let pair = (0..length).map(|k| (rows[i * length + k], rows[j * length + k]));
                    let expected: i64 = pair.map(|(x, y)| i64::from(x) * i64::from(y)).sum();
                    assert_eq!(
                        actual.next(),
                        Some(expected + 5),
                        "{count} x {length}: {i}, {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn largest_products_fit_32_bits() {
        for sign in [1, -1] {
            let mut rows = vec![LARGEST; LONGEST];
            rows.extend(vec![LARGEST * sign; LONGEST]);
            let mut sums = [0; 3];
            add_products(&rows, LONGEST, &mut sums);
            let most = i64::from(LARGEST) * i64::from(LARGEST) * LONGEST as i64;
            assert_eq!(sums, [most, most * i64::from(sign), most]);
        }
    }
}
