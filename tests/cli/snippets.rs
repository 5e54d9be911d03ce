//! `octet inspect --snippet`: only the code is printed, for the model as it is named.

use octet_test_models::networks;

use super::{good, misused, prepared, refused, save};

#[test]
fn a_snippet_is_printed_alone_and_samples_are_the_usual_kind() {
    let folder = prepared("snippets");
    let (usual, said) = good(&folder, &["inspect", "m.onnx", "--snippet"]);
    assert_eq!(said, "");
    let named = ["inspect", "m.onnx", "--snippet", "samples"];
    assert_eq!(good(&folder, &named).0, usual);
    assert!(usual.starts_with("# Writes samples of the inputs of m.onnx"));
    assert!(usual.contains("\"x\": normalized(random.integers(0, 256, (1, 3, 4, 4))),"));
    assert!(!usual.contains("Sizes that the model leaves open"));
    save(
        &folder,
        "open.onnx",
        &networks::mobile(&["n", "3", "16", "16"]),
    );
    for (kind, variable) in [
        ("samples", "\nn = 1\n"),
        ("onnxruntime", "\nn = 1\n"),
        ("onnxruntime-web", "\nconst n = 1;\n"),
        ("transformers.js", "\nconst n = 1;\n"),
    ] {
        let (text, _) = good(&folder, &["inspect", "open.onnx", "--snippet", kind]);
        assert!(text.contains(variable), "{kind}: {text}");
    }
}

#[test]
fn kinds_that_are_not_there_are_refused_with_those_that_are() {
    let folder = prepared("snippets-refused");
    let unknown = ["inspect", "m.onnx", "--snippet", "tflite"];
    misused(&folder, &unknown, &["tflite", "onnxruntime-web", "samples"]);
    let both = ["inspect", "m.onnx", "--snippet", "samples", "--json"];
    misused(&folder, &both, &["--snippet", "--json"]);
    refused(
        &folder,
        &["inspect", "gone.onnx", "--snippet"],
        &["gone.onnx"],
    );
}
