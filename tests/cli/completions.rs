//! `octet completions`: shells take the script, and it completes.

use std::fs;
use std::process::Command;

use super::{folder, good, misused};

const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

/// The output of bash for a script.
fn bash(folder: &std::path::Path, script: &str) -> String {
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.is_empty(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_script_knows_commands_options_and_the_name_of_the_program() {
    let folder = folder("completions");
    for shell in SHELLS {
        let (script, _) = good(&folder, &["completions", shell]);
        for word in ["quantize", "completions", "--samples", "octet"] {
            assert!(
                script.contains(word),
                "{word:?} is not in {shell}: {script}"
            );
        }
        let other = ["completions", shell, "--name", "octet-onnx"];
        assert!(good(&folder, &other).0.contains("octet-onnx"), "{shell}");
    }
    misused(&folder, &["completions", "tcsh"], &["tcsh", "powershell"]);
    let name = ["completions", "bash", "--name", "a;b"];
    misused(&folder, &name, &["a;b", "name of a program"]);
}

#[test]
fn bash_reads_its_script_and_completes_with_it() {
    let folder = folder("completions-bash");
    let (script, _) = good(&folder, &["completions", "bash"]);
    fs::write(folder.join("octet.bash"), script).unwrap();
    bash(&folder, "bash -n octet.bash");
    for (words, wanted) in [
        ("octet qua", "quantize"),
        ("octet quantize --meth", "--method"),
        ("octet completions fi", "fish"),
    ] {
        let last = words.rsplit(' ').next().unwrap();
        let count = words.split(' ').count() - 1;
        let completed = bash(
            &folder,
            &format!(
                "source octet.bash; COMP_WORDS=({words}); COMP_CWORD={count}; \
                 _octet octet {last} x; echo \"${{COMPREPLY[@]}}\""
            ),
        );
        assert_eq!(completed.trim(), wanted, "{words}");
    }
}
