//! Names of classes in a model's metadata.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use crate::graph::Model;

/// Keys under which exporters write names of classes.
const KEYS: [&str; 4] = ["names", "id2label", "class_names", "classes"];

/// Limit on the number of names.
const MAX_NAMES: usize = 100_000;

/// Numbers and names of classes; empty if the metadata state none.
pub(super) fn class_names(model: &Model) -> Vec<(usize, String)> {
    let entries = &model.header().metadata_props;
    let written = KEYS.iter().find_map(|key| {
        let mut entries = entries.iter();
        entries.find_map(|entry| {
            let names = names_in(entry.value.as_deref()?);
            (entry.key.as_deref() == Some(key) && !names.is_empty()).then_some(names)
        })
    });
    written.unwrap_or_default().into_iter().collect()
}

/// A word of the text: a number, or a name in quotes.
enum Word {
    Number(usize),
    Name(String),
}

/// Names in the text of a dictionary or list, as Python or JSON writes it. A name in quotes that is
/// a number before a colon is a key, as in JSON. Empty where a name has no number or two names
/// share one.
fn names_in(text: &str) -> BTreeMap<usize, String> {
    let mut names = BTreeMap::new();
    let is_list = text.trim_start().starts_with('[');
    let mut number = None;
    let mut rest = text.chars().peekable();
    while let Some(word) = next_word(&mut rest) {
        let place = match word {
            Word::Number(value) => {
                number = Some(value);
                continue;
            }
            Word::Name(_) if is_list => Some(names.len()),
            Word::Name(_) => number.take(),
        };
        let (Some(place), Word::Name(name)) = (place, word) else {
            return BTreeMap::new();
        };
        if names.len() == MAX_NAMES || names.insert(place, name).is_some() {
            return BTreeMap::new();
        }
    }
    names
}

fn next_word(rest: &mut Peekable<Chars<'_>>) -> Option<Word> {
    loop {
        match rest.next()? {
            quote @ ('\'' | '"') => {
                let name = quoted(rest, quote)?;
                while rest.next_if(|letter| letter.is_whitespace()).is_some() {}
                let key = rest.peek() == Some(&':');
                return Some(match name.parse() {
                    Ok(number) if key => Word::Number(number),
                    _ => Word::Name(name),
                });
            }
            digit @ '0'..='9' => {
                let mut digits = String::from(digit);
                while let Some(more) = rest.next_if(char::is_ascii_digit) {
                    digits.push(more);
                }
                return digits.parse().ok().map(Word::Number);
            }
            _ => {}
        }
    }
}

/// The rest of a text in quotes; `None` if it does not end.
fn quoted(rest: &mut Peekable<Chars<'_>>, quote: char) -> Option<String> {
    let mut name = String::new();
    loop {
        match rest.next()? {
            '\\' => name.push(rest.next()?),
            letter if letter == quote => return Some(name),
            letter => name.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<(usize, String)> {
        names_in(text).into_iter().collect()
    }

    fn pairs(all: &[(usize, &str)]) -> Vec<(usize, String)> {
        all.iter()
            .map(|&(number, name)| (number, name.to_owned()))
            .collect()
    }

    #[test]
    fn names_are_read_from_dictionaries_and_lists() {
        let expected = pairs(&[(0, "person"), (2, "cat's paw")]);
        assert_eq!(listed(r#"{0: 'person', 2: "cat's paw"}"#), expected);
        assert_eq!(listed(r#"{0: 'person', 2: 'cat\'s paw'}"#), expected);
        assert_eq!(listed(r#"{"0": "person", "2" : "cat's paw"}"#), expected);
        assert_eq!(listed(r#"["7", "x"]"#), pairs(&[(0, "7"), (1, "x")]));
    }

    #[test]
    fn a_text_without_clear_numbers_gives_no_names() {
        for text in [
            "",
            "person, cat",
            "{'cat': 'x'}",
            "{0: 'a', 0: 'b'}",
            "{0: 'a",
        ] {
            assert!(names_in(text).is_empty(), "{text}");
        }
    }
}
