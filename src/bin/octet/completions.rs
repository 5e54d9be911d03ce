//! `octet completions`: a script with which a shell completes commands and options. All but
//! PowerShell also complete values.

use clap::{Args, ValueEnum};
use clap_complete::{Shell, generate};

use super::{Failure, files};

#[derive(Args)]
pub struct CompletionOptions {
    /// The shell that reads the script
    shell: ShellName,
    /// Name of the program that is completed, such as octet-onnx, the one of the npm package
    #[arg(long, value_name = "PROGRAM", default_value = "octet", value_parser = program_name)]
    name: String,
}

#[derive(Clone, Copy, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
}

/// A name that means nothing else to a shell.
fn program_name(name: &str) -> Result<String, String> {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
    match !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) {
        true => Ok(name.to_owned()),
        false => Err("give the name of a program: letters, digits, `-`, `_` and `.`".into()),
    }
}

/// Runs the command.
pub fn run(options: &CompletionOptions, mut program: clap::Command) -> Result<(), Failure> {
    let shell = match options.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
        ShellName::PowerShell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    generate(shell, &mut program, &options.name, &mut script);
    files::print(&String::from_utf8_lossy(&script))
}
