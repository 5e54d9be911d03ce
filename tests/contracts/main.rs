//! Files that are generated from the Rust types: the JSON schema and the tables of the settings, and
//! the TypeScript declarations. `make contracts` writes them; without it the test compares them.

#![allow(clippy::unwrap_used)]

mod markdown;
mod typescript;

use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The environment variable with which the test writes the files instead of comparing them.
const WRITE: &str = "OCTET_WRITE_CONTRACTS";

/// The schema of the settings document, with all definitions.
fn settings_schema() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator();
    let mut schema = generator.into_root_schema_for::<octet::quantize::Settings>();
    schema.insert("title".into(), "Octet settings".into());
    schema.to_value()
}

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_default()
}

/// Compares a file with its generated content, or writes it.
fn check(path: &str, generated: &str) {
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(file(path), generated).unwrap();
    }
    let present = read(path);
    let line = present
        .lines()
        .zip(generated.lines())
        .position(|(a, b)| a != b);
    assert!(
        present == generated,
        "{path} differs from the Rust types at line {}; run `make contracts` and commit the result",
        line.map_or(
            present.lines().count().min(generated.lines().count()),
            |at| at
        ) + 1
    );
}

#[test]
fn the_schema_of_the_settings_is_current() {
    let text = serde_json::to_string_pretty(&settings_schema()).unwrap() + "\n";
    check("docs/settings.schema.json", &text);
}

#[test]
fn the_tables_of_the_settings_are_current() {
    let path = "docs/settings.md";
    check(
        path,
        &markdown::with_tables(&read(path), &settings_schema()),
    );
}

#[test]
fn the_list_of_methods_is_current() {
    let choices = octet::stats::METHODS.iter().flat_map(|entry| entry.choices);
    let rows = choices.map(|(value, label)| format!("  ['{value}', '{label}'],\n"));
    let text = format!(
        "// @ts-check\n/** Calibration methods with labels. Generated from the Rust list by `make contracts`. \
         @type {{[string, string][]}} */\nexport const methods = [\n{}];\n",
        rows.collect::<String>()
    );
    check("www/methods.js", &text);
}

#[test]
fn the_typescript_declarations_are_current() {
    check("www/types.d.ts", &typescript::declarations());
}
