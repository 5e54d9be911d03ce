//! `octet check`: a file against the rules of the place where it will run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use octet::onnx::{external, read, schema::ModelProto};
use octet::targets::{RunTarget, Violation, check};
use octet_host::fs;

use super::settings_help::{help, parse};
use super::{Failure, files};

/// Violations of a rule that are printed without `--verbose`.
const NAMED: usize = 3;

#[derive(Args)]
pub struct CheckOptions {
    /// The model; external data files beside it are found automatically
    model: PathBuf,
    #[arg(long, value_name = "TARGET", help = help("target"))]
    target: String,
    /// Print every violation instead of three of each rule
    #[arg(long)]
    verbose: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &CheckOptions) -> Result<(), Failure> {
    let target: RunTarget = parse("--target", &options.target, "target")?;
    let path = options.model.as_path();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let violations = check(&model_at(path)?, &name, target);
    let rules = target.rules().len();
    if options.json {
        let document = serde_json::json!({
            "model": name, "target": target.name(), "rules": rules, "violations": violations,
        });
        files::print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else if violations.is_empty() {
        files::print(&format!(
            "{}: fulfils the {rules} rules of {target}\n",
            path.display()
        ))?;
    } else {
        files::print(&text(&violations, options.verbose)?)?;
    }
    match violations.first() {
        None => Ok(()),
        Some(first) => Err(Failure::requirement(format!(
            "{} breaks rules of {target} in {} places, first {} at {}: quantize it with --target {target}",
            path.display(),
            violations.len(),
            first.rule,
            first.place
        ))),
    }
}

/// Reads a model with its external data.
fn model_at(path: &Path) -> Result<ModelProto, Failure> {
    let failed =
        |cause: &dyn std::fmt::Display| Failure::input(cause.to_string()).about(path.display());
    let mut model =
        read(Bytes::from(files::read(path, "model")?)).map_err(|error| failed(&error))?;
    let mut data = BTreeMap::new();
    for location in external::files(&model) {
        let beside = path.parent().unwrap_or(Path::new("")).join(&location);
        // Attaching refuses files outside the folder, with a message.
        if external::is_inside(&location) && fs::is_file(&beside) {
            let bytes = files::read(&beside, "model's weights")?;
            data.insert(location, Bytes::from(bytes));
        }
    }
    external::attach(&mut model, &data).map_err(|error| failed(&error))?;
    Ok(model)
}

/// The violations, grouped by rule.
fn text(violations: &[Violation], all: bool) -> Result<String, Failure> {
    let mut text = String::new();
    for group in violations.chunk_by(|one, other| one.rule == other.rule) {
        let Violation {
            rule,
            text: words,
            source,
            ..
        } = &group[0];
        writeln!(text, "{rule}: {words} ({source})")?;
        let shown = if all {
            group.len()
        } else {
            NAMED.min(group.len())
        };
        for violation in &group[..shown] {
            writeln!(text, "  {}: {}", violation.place, violation.found)?;
        }
        if group.len() > shown {
            writeln!(text, "  and {} more", group.len() - shown)?;
        }
    }
    Ok(text)
}
