//! Products of rows with each other, exactly.

/// So many integers of a row are added up in 32 bits: with magnitudes up to [`LARGEST`] they fit.
pub const LONGEST: usize = 512;

/// The largest magnitude an integer of a row may have.
pub const LARGEST: i16 = 2047;

/// Adds the product of each row with itself and with all rows before it to `sums`, row after row: first · first, second · first,
/// second · second and so on. Rows have `length` integers, at most [`LONGEST`], of at most [`LARGEST`].
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
            // These come first: a sum that was taken for a product that isn't there would be lost.
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

/// Four at once, so that the row is read once for them.
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
    fn each_pair_of_rows_has_its_product() {
        for (count, length) in [(1, 1), (3, 8), (4, 13), (9, 256), (13, 512)] {
            let rows: Vec<i16> = (0..count * length)
                .map(|i| (i * 7919 % 4095) as i16 - LARGEST)
                .collect();
            let mut sums = vec![5; count * (count + 1) / 2];
            add_products(&rows, length, &mut sums);
            let mut found = sums.into_iter();
            for i in 0..count {
                for j in 0..=i {
                    let pair = (0..length).map(|k| (rows[i * length + k], rows[j * length + k]));
                    let wanted: i64 = pair.map(|(x, y)| i64::from(x) * i64::from(y)).sum();
                    assert_eq!(
                        found.next(),
                        Some(wanted + 5),
                        "{count} x {length}: {i}, {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_largest_fit() {
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
