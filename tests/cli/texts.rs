//! Texts as samples: the tokenizer is found by itself, and refusals say what to do.

use std::fs;
use std::path::{Path, PathBuf};

use octet::graph::{Dim, TensorType};
use octet::onnx::schema::{
    DataType, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
};
use serde_json::{Value, json};

use super::{folder, good, misused, refused, save};

/// Words of the vocabulary, numbered in this order.
const WORDS: [&str; 8] = ["[PAD]", "[UNK]", "the", "cat", "sat", "on", "a", "mat"];

/// Logits that depend on the token alone.
fn language_model(second: &str) -> ModelProto {
    let info = |name: &str, element, last: &[Dim]| {
        let mut shape = vec![Dim::Named("batch".into()), Dim::Named("length".into())];
        shape.extend_from_slice(last);
        let shape = Some(shape);
        ValueInfoProto::new(name, &TensorType { element, shape })
    };
    let weight = |name: &str, dims: &[usize], factor: usize| {
        let count: usize = dims.iter().product();
        let values: Vec<f32> = (0..count)
            .map(|i| ((i * factor) % 23) as f32 / 8.0 - 1.4)
            .collect();
        TensorProto::from_f32(name, dims, &values)
    };
    let words = WORDS.len();
    let graph = GraphProto {
        name: Some("g".into()),
        node: vec![
            NodeProto::new("Gather", "embed", &["table", "input_ids"], &["x"]),
            NodeProto::new("MatMul", "head", &["x", "w"], &["logits"]),
        ],
        input: vec![
            info("input_ids", DataType::Int64, &[]),
            info(second, DataType::Int64, &[]),
        ],
        output: vec![info("logits", DataType::Float, &[Dim::Known(WORDS.len())])],
        initializer: vec![
            weight("table", &[words, 16], 7),
            weight("w", &[16, words], 11),
        ],
        ..Default::default()
    };
    ModelProto::from_graph(graph, 17)
}

fn tokenizer() -> String {
    let words = WORDS.iter().enumerate();
    let vocabulary: serde_json::Map<String, Value> = words
        .map(|(id, word)| ((*word).into(), id.into()))
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    })
    .to_string()
}

/// A folder as exporters write it, with texts.
fn exported(test: &str) -> PathBuf {
    let folder = folder(test);
    fs::create_dir(folder.join("onnx")).unwrap();
    save(&folder, "onnx/m.onnx", &language_model("attention_mask"));
    fs::write(folder.join("tokenizer.json"), tokenizer()).unwrap();
    fs::write(
        folder.join("a.txt"),
        "the cat sat\n\non a mat and the cat\n",
    )
    .unwrap();
    folder
}

fn compared(folder: &Path, options: &[&str]) -> Value {
    let compare = ["compare", "onnx/m.onnx", "q.onnx", "--json", "--samples"];
    serde_json::from_str(&good(folder, &[&compare, options].concat()).0).unwrap()
}

#[test]
fn texts_calibrate_and_judge_a_language_model() {
    let folder = exported("texts");
    let quantize = [
        "quantize",
        "onnx/m.onnx",
        "--out",
        "q.onnx",
        "--samples",
        "a.txt",
    ];
    good(&folder, &quantize);
    let found = compared(&folder, &["a.txt"]);
    assert_eq!(found["samples"], 2);
    let output = &found["outputs"][0];
    assert_eq!(
        (&output["kind"], &output["tokens"]["positions"]),
        (&json!("tokens"), &json!(9))
    );
    assert!(output["tokens"]["kl"].as_f64().unwrap() > 0.0);
    let again = good(
        &folder,
        &["compare", "onnx/m.onnx", "q.onnx", "--samples", "a.txt"],
    )
    .0;
    assert!(
        again.contains("KL divergence") && again.contains("over 9 positions"),
        "{again}"
    );
    let (printed, _) = good(&folder, &["run", "onnx/m.onnx", "--samples", "a.txt"]);
    assert!(printed.starts_with("logits: float32 1×3×8"), "{printed}");
}

#[test]
fn fields_of_records_and_columns_are_texts() {
    let folder = exported("text-fields");
    good(
        &folder,
        &[
            "quantize",
            "onnx/m.onnx",
            "--out",
            "q.onnx",
            "--samples",
            "a.txt",
        ],
    );
    fs::write(
        folder.join("a.jsonl"),
        "{\"id\": 1, \"line\": \"the mat\"}\n",
    )
    .unwrap();
    fs::write(
        folder.join("b.csv"),
        "id,line,other\n1,a cat,\"the cat sat on\"\n2,a,mat\n",
    )
    .unwrap();
    assert_eq!(
        compared(&folder, &["a.jsonl"])["outputs"][0]["tokens"]["positions"],
        2
    );
    let both = compared(&folder, &["b.csv", "a.txt", "--text-field", "other"]);
    assert_eq!(both["outputs"][0]["tokens"]["positions"], 4 + 1 + 9);
    let compare = ["compare", "onnx/m.onnx", "q.onnx", "--samples", "b.csv"];
    refused(
        &folder,
        &compare,
        &["b.csv line 1", "\"line\", \"other\"", "name the field"],
    );
}

#[test]
fn the_first_text_is_shown_as_the_model_receives_it() {
    let folder = exported("text-preview");
    let inspect = [
        "inspect",
        "onnx/m.onnx",
        "--samples",
        "a.txt",
        "--max-length",
        "2",
        "--texts",
        "1",
    ];
    let (printed, said) = good(&folder, &inspect);
    for line in [
        "  sample a.txt:1:",
        "    attention_mask: int64 1×2",
        "       2     0     1  the",
        "       3     0     1  cat",
    ] {
        assert!(printed.lines().any(|other| other == line), "{printed}");
    }
    assert!(
        said.contains("1 of 2 texts are used") && said.contains("1 of 1 texts were cut"),
        "{said}"
    );
}

#[test]
fn a_text_that_can_not_be_used_is_refused_with_a_remedy() {
    let folder = exported("text-refusals");
    let run = ["run", "onnx/m.onnx", "--samples", "a.txt"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    misused(&folder, &with(&["--max-length", "0"]), &["--max-length"]);
    refused(
        &folder,
        &with(&["--tokenizer", "a.txt"]),
        &["a.txt is not a tokenizer", "tokenizer.json"],
    );
    refused(
        &folder,
        &with(&["--tokenizer", "none.json"]),
        &["none.json", "check the path"],
    );
    fs::write(folder.join("a.jsonl"), "{\"text\": 1}\n").unwrap();
    let broken = ["run", "onnx/m.onnx", "--samples", "a.jsonl"];
    refused(&folder, &broken, &["a.jsonl line 1", "\"text\" is missing"]);
    save(&folder, "onnx/m.onnx", &language_model("encoder_outputs"));
    refused(
        &folder,
        &run,
        &["\"encoder_outputs\"", "int64 [batch, length]", ".npz"],
    );
    fs::remove_file(folder.join("tokenizer.json")).unwrap();
    save(&folder, "onnx/m.onnx", &language_model("attention_mask"));
    misused(&folder, &run, &["no tokenizer.json in onnx", "--tokenizer"]);
}
