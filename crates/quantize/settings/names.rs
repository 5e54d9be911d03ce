//! Matching of scopes and patterns against node names, and suggestions for misspelt names.

/// True where a scope or pattern matches a node name.
///
/// `''` matches all names. A pattern with `*` must match the whole name. Anything else is a scope. It
/// matches the node of that name, and all names that continue with `.` or `/`, as PyTorch's module
/// names do. A leading `/` is ignored.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let name = name.trim_start_matches('/');
    let pattern = pattern.trim_start_matches('/');
    if pattern.is_empty() {
        return true;
    }
    if pattern.contains('*') {
        return matches_pattern(pattern.as_bytes(), name.as_bytes());
    }
    let same = |a: u8, b: u8| a == b || (is_separator(a) && is_separator(b));
    let (wanted, actual) = (pattern.as_bytes(), name.as_bytes());
    actual.len() >= wanted.len()
        && wanted.iter().zip(actual).all(|(&a, &b)| same(a, b))
        && (is_separator(wanted[wanted.len() - 1])
            || actual
                .get(wanted.len())
                .is_none_or(|&next| is_separator(next)))
}

fn is_separator(byte: u8) -> bool {
    byte == b'.' || byte == b'/'
}

/// True where a pattern with `*` matches a whole name. It backtracks to the last star only, so the
/// cost is at most the product of the lengths.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((after, from)) = star {
            star = Some((after, from + 1));
            p = after;
            n = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// The name that is most similar to `wanted`; `None` where all differ by more than a third.
pub(super) fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| {
            let inside = !wanted.is_empty() && (name.contains(wanted) || wanted.contains(name));
            let apart = distance(wanted, name);
            (if inside { apart.min(1) } else { apart }, name)
        })
        .filter(|&(apart, name)| apart <= wanted.len().max(name.len()).div_ceil(3))
        .min()
        .map(|(_, name)| name)
}

/// The end of an error about an unknown name: a suggestion, or nothing.
pub(super) fn hint<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, names).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// The edit distance: changes, insertions, deletions and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Long names differ near their beginning, so a prefix is enough and the table stays small.
    let (a, b) = (&a[..a.len().min(200)], &b[..b.len().min(200)]);
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut best = (rows[i][j + 1] + 1)
                .min(row[j] + 1)
                .min(rows[i][j] + usize::from(x != y));
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_matches_the_names_below_it() {
        for (pattern, name, wanted) in [
            ("", "anything", true),
            ("backbone", "backbone", true),
            ("backbone", "/backbone/conv1/Conv", true),
            ("backbone.conv1", "/backbone/conv1/Conv", true),
            ("backbone", "backbone2.conv", false),
            ("backbone/", "backbone/conv", true),
            ("conv", "backbone/conv", false),
            ("*conv*", "backbone/conv1", true),
            ("*/conv", "backbone/conv1", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested_and_no_distant_one() {
        let names = ["method", "activations", "weights"];
        assert_eq!(nearest("metod", names), Some("method"));
        assert_eq!(nearest("wieghts", names), Some("weights"));
        assert_eq!(nearest("activation", names), Some("activations"));
        assert_eq!(nearest("zzz", names), None);
    }
}
