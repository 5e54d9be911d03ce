//! Names of a model inside code: strings, comments, words of a shell, and variables.

/// A string that Python and JavaScript read alike.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => out.extend(['\\', sign]),
            // These end a line in one of the languages.
            '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(sign))),
            sign if sign.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(sign))),
            sign => out.push(sign),
        }
    }
    out.push('"');
    out
}

/// Text for a comment, which a line break would end.
pub(super) fn comment(text: &str) -> String {
    let ends = |sign: char| sign.is_control() || "\u{2028}\u{2029}".contains(sign);
    text.chars()
        .map(|sign| if ends(sign) { ' ' } else { sign })
        .collect()
}

/// A word of a command line, inside a comment.
pub(super) fn shell_word(text: &str) -> String {
    let text = comment(text);
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "-_./+".contains(sign);
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Variables for the sizes of named axes.
pub(super) struct Sizes {
    reserved: Vec<String>,
    /// Name of the axis, variable, size.
    known: Vec<(String, String, usize)>,
}

/// Words that are no names in Python or JavaScript, as far as they consist of small letters.
const KEYWORDS: &[&str] = &[
    "and",
    "as",
    "assert",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "def",
    "default",
    "del",
    "delete",
    "do",
    "elif",
    "else",
    "enum",
    "except",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "from",
    "function",
    "global",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "is",
    "lambda",
    "let",
    "new",
    "nonlocal",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "public",
    "raise",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

impl Sizes {
    /// No sizes; `reserved` are the other names of the snippet.
    pub(super) fn new(reserved: &[&str]) -> Sizes {
        Sizes {
            reserved: reserved.iter().map(ToString::to_string).collect(),
            known: Vec::new(),
        }
    }

    /// Adds an axis, unless it is known.
    pub(super) fn add(&mut self, axis: &str, size: usize) {
        if self.known.iter().any(|(known, ..)| known == axis) {
            return;
        }
        let letter = |sign: char| match sign.is_ascii_alphanumeric() {
            true => sign.to_ascii_lowercase(),
            false => '_',
        };
        let mut variable: String = axis.chars().map(letter).collect();
        while variable.contains("__") {
            variable = variable.replace("__", "_");
        }
        variable = variable.trim_matches('_').to_owned();
        if !variable.starts_with(|sign: char| sign.is_ascii_lowercase()) {
            variable = format!("size_{variable}").trim_end_matches('_').to_owned();
        }
        let taken = |name: &String| {
            KEYWORDS.contains(&name.as_str())
                || self.reserved.contains(name)
                || self.known.iter().any(|(_, known, _)| known == name)
        };
        while taken(&variable) {
            variable.push('_');
        }
        self.known.push((axis.to_owned(), variable, size));
    }

    /// The variable of an axis that was added.
    pub(super) fn variable(&self, axis: &str) -> String {
        let found = self.known.iter().find(|(known, ..)| known == axis);
        found.map_or("1".into(), |(_, variable, _)| variable.clone())
    }

    /// A line for each size, made of the variable, its value and a comment with the name of the axis.
    /// The comment is empty where it would repeat the variable. Sums come last, in variables.
    pub(super) fn lines(&self, line: impl Fn(&str, &str, &str) -> String) -> String {
        let (mut numbers, mut sums) = (String::new(), String::new());
        for (axis, variable, size) in &self.known {
            let name = match axis == variable {
                true => String::new(),
                false => comment(axis),
            };
            match self.sum(axis) {
                Some(sum) => sums.push_str(&line(variable, &sum, &name)),
                None => numbers.push_str(&line(variable, &size.to_string(), &name)),
            }
        }
        numbers + &sums
    }

    /// The sum of other sizes that the name of an axis states, such as `past + length`.
    fn sum(&self, axis: &str) -> Option<String> {
        let parts: Vec<&str> = axis.split('+').map(str::trim).collect();
        let term = |part: &&str| match part.parse::<u32>() {
            Ok(number) => Some(number.to_string()),
            Err(_) => {
                let found = self.known.iter().find(|(known, ..)| known == part);
                found.map(|(_, variable, _)| variable.clone())
            }
        };
        let terms: Option<Vec<String>> = parts.iter().map(term).collect();
        terms
            .filter(|_| parts.len() > 1)
            .map(|terms| terms.join(" + "))
    }

    /// True if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_become_variables_of_their_own() {
        let mut sizes = Sizes::new(&["random"]);
        let axes = [
            "batch",
            "past + length",
            "2x",
            "Batch",
            "class",
            "random",
            "?!",
            "batch",
        ];
        axes.iter().for_each(|axis| sizes.add(axis, 1));
        let variables = axes.map(|axis| sizes.variable(axis));
        let wanted = [
            "batch",
            "past_length",
            "size_2x",
            "batch_",
            "class_",
            "random_",
            "size",
            "batch",
        ];
        assert_eq!(variables, wanted);
    }

    #[test]
    fn a_sum_of_axes_follows_them() {
        let mut sizes = Sizes::new(&[]);
        for axis in [
            "past + length",
            "length",
            "past",
            "past + other",
            "length+1",
        ] {
            sizes.add(axis, 16);
        }
        let lines = sizes.lines(|variable, value, name| format!("{variable} = {value} ({name})\n"));
        let wanted = "length = 16 ()\npast = 16 ()\npast_other = 16 (past + other)\n\
            past_length = past + length (past + length)\nlength_1 = length + 1 (length+1)\n";
        assert_eq!(lines, wanted);
    }

    #[test]
    fn no_name_breaks_out_of_its_place() {
        assert_eq!(quoted("a\"\\\n\u{2028}é"), "\"a\\\"\\\\\\u000a\\u2028é\"");
        assert_eq!(comment("a\nb\rc\u{2029}d"), "a b c d");
        assert_eq!(shell_word("it's a.onnx"), "'it'\\''s a.onnx'");
        assert_eq!(shell_word("folder/m-1.onnx"), "folder/m-1.onnx");
        assert_eq!(shell_word("-m"), "'-m'");
    }
}
