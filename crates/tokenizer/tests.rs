use octet_samples::{TextSettings, TextTokens, TextUnit};
use serde_json::json;

use super::{TextError, TextTokenizer, TokenizedFile};

/// A tokenizer of whole words, `[CLS] a [SEP]` and pairs `[CLS] a [SEP] b [SEP]`.
fn words() -> String {
    let vocabulary = [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "dog",
    ];
    let vocabulary: serde_json::Map<String, serde_json::Value> = vocabulary
        .iter()
        .enumerate()
        .map(|(id, token)| ((*token).into(), id.into()))
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    })
    .to_string()
}

fn tokenizer(config: &str) -> TextTokenizer {
    let config = Some(("tokenizer_config.json", config.as_bytes()));
    TextTokenizer::new(("tokenizer.json", words().as_bytes()), config).unwrap()
}

fn tokenize(path: &str, text: &str, settings: &TextSettings) -> Result<TokenizedFile, TextError> {
    tokenizer("{}").tokenize((path, text.as_bytes()), settings, None)
}

fn tokens(file: &TokenizedFile) -> Vec<(String, TextTokens)> {
    let read =
        |(name, bytes): &(String, Vec<u8>)| (name.clone(), serde_json::from_slice(bytes).unwrap());
    file.samples.iter().map(read).collect()
}

/// Names and numbers of the tokens.
fn ids(path: &str, text: &str, settings: &TextSettings) -> Vec<(String, Vec<u32>)> {
    let file = tokenize(path, text, settings).unwrap();
    let all = tokens(&file).into_iter();
    all.map(|(name, text)| (name, text.ids)).collect()
}

fn named(fields: &[&str]) -> TextSettings {
    TextSettings {
        fields: fields.iter().map(|field| (*field).into()).collect(),
        ..TextSettings::default()
    }
}

#[test]
fn each_line_or_paragraph_is_a_text_named_by_its_line() {
    let text = "\u{feff}The cat\r\n\n  sat  \ndog\n";
    let lines = TextSettings::default();
    let one = |name: &str, ids: &[u32]| (name.to_string(), ids.to_vec());
    assert_eq!(
        ids("a.txt", text, &lines),
        [
            one("a.txt:1.tokens", &[2, 4, 5, 3]),
            one("a.txt:3.tokens", &[2, 6, 3]),
            one("a.txt:4.tokens", &[2, 7, 3]),
        ]
    );
    let paragraphs = TextSettings {
        unit: TextUnit::Paragraphs,
        ..lines
    };
    assert_eq!(
        ids("a.txt", text, &paragraphs),
        [
            one("a.txt:1.tokens", &[2, 4, 5, 3]),
            one("a.txt:3.tokens", &[2, 6, 7, 3]),
        ]
    );
}

#[test]
fn the_field_is_the_named_one_or_text_or_the_only_text() {
    let lines = "{\"id\": 1, \"text\": \"cat\", \"other\": \"dog\"}\n";
    let numbers =
        |path: &str, text: &str, fields: &[&str]| ids(path, text, &named(fields))[0].1.clone();
    assert_eq!(numbers("a.jsonl", lines, &[]), [2, 5, 3]);
    assert_eq!(numbers("a.jsonl", lines, &["other"]), [2, 7, 3]);
    assert_eq!(
        numbers("a.jsonl", "{\"n\": 1, \"line\": \"sat\"}", &[]),
        [2, 6, 3]
    );
    assert_eq!(numbers("a.jsonl", "\"sat\"", &[]), [2, 6, 3]);
    let table = "id,line\n1,\"the, cat\"\n2,dog\n";
    assert_eq!(numbers("a.CSV", table, &[]), [2, 4, 1, 5, 3]);
    assert_eq!(numbers("a.csv", "text,x\ncat,dog\n", &["x"]), [2, 7, 3]);
}

#[test]
fn two_fields_are_a_pair_whose_second_text_has_the_type_1() {
    let file = tokenize("a.csv", "q,a\nthe cat,sat\n", &named(&["q", "a"])).unwrap();
    let (name, pair) = tokens(&file).remove(0);
    assert_eq!(name, "a.csv:2.tokens");
    assert_eq!(pair.ids, [2, 4, 5, 3, 6, 3]);
    assert_eq!(pair.type_ids, [0, 0, 0, 0, 1, 1]);
    assert_eq!(pair.tokens[1..3], ["the", "cat"]);
}

#[test]
fn long_texts_keep_their_special_tokens() {
    let text = ("a.txt", "the cat sat\ndog".as_bytes());
    let limited = |max_length, fixed, config: &str| {
        let settings = TextSettings {
            max_length,
            ..TextSettings::default()
        };
        let file = tokenizer(config).tokenize(text, &settings, fixed).unwrap();
        (tokens(&file)[0].1.ids.clone(), file.cut)
    };
    let cut = (vec![2, 4, 5, 3], 1);
    assert_eq!(limited(Some(4), None, "{}"), cut);
    assert_eq!(limited(None, Some(4), "{}"), cut);
    assert_eq!(limited(Some(9), Some(4), "{}"), cut);
    assert_eq!(limited(None, None, "{\"model_max_length\": 4}"), cut);
    assert_eq!(limited(None, None, "{\"model_max_length\": 1e30}").1, 0);
    let long = "cat ".repeat(600);
    let file = tokenizer("{}").tokenize(("a.txt", long.as_bytes()), &TextSettings::default(), None);
    assert_eq!(tokens(&file.unwrap())[0].1.ids.len(), 512);
    let settings = TextSettings {
        max_length: Some(2),
        ..TextSettings::default()
    };
    let message = tokenize("a.txt", "cat", &settings).unwrap_err().to_string();
    assert!(message.contains("adds 3 special tokens"), "{message}");
}

#[test]
fn a_part_of_many_texts_is_spread_over_the_file() {
    let text = "cat\n".repeat(10);
    let settings = TextSettings {
        count: 3,
        ..TextSettings::default()
    };
    let file = tokenize("a.txt", &text, &settings).unwrap();
    assert_eq!(file.texts, 10);
    let names: Vec<&str> = file.samples.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["a.txt:1.tokens", "a.txt:4.tokens", "a.txt:7.tokens"]
    );
}

#[test]
fn padding_is_that_of_the_configuration_or_of_a_usual_name() {
    assert_eq!(tokenizer("{}").padding.id, 0);
    let padding = tokenizer("{\"pad_token\": \"dog\", \"padding_side\": \"left\"}").padding;
    assert!(padding.id == 7 && padding.left);
    assert_eq!(
        tokenizer("{\"pad_token\": {\"content\": \"cat\"}}")
            .padding
            .id,
        5
    );
}

#[test]
fn problems_name_the_file_the_line_and_a_remedy() {
    for (path, text, fields, words) in [
        ("a.txt", " \n", &[][..], ["no text", "a.txt"]),
        (
            "a.jsonl",
            "{\"text\": \"a\"}\n{",
            &[],
            ["line 2", "JSON object a line"],
        ),
        (
            "a.jsonl",
            "{\"a\": \"x\", \"b\": \"y\"}",
            &[],
            ["2 hold text", "\"a\", \"b\""],
        ),
        (
            "a.jsonl",
            "{\"text\": \"x\"}\n{}",
            &[],
            ["line 2", "\"text\" is missing"],
        ),
        (
            "a.csv",
            "a,b\nx,y\n",
            &["c"],
            ["no field \"c\"", "\"a\", \"b\""],
        ),
        ("a.csv", "a\n\"x", &[], ["line 2", "quoted"]),
        (
            "a.csv",
            "a,b,c\nx,y,z",
            &["a", "b", "c"],
            ["3 fields", "pairs"],
        ),
    ] {
        let message = tokenize(path, text, &named(fields))
            .unwrap_err()
            .to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    let broken = tokenizer("{}").tokenize(("a.txt", b"a\n\xff"), &TextSettings::default(), None);
    let message = broken.unwrap_err().to_string();
    assert!(message.contains("line 2: it is not UTF-8"), "{message}");
    let message = TextTokenizer::new(("t.json", b"{}"), None)
        .err()
        .unwrap()
        .to_string();
    assert!(
        message.starts_with("t.json is not a tokenizer"),
        "{message}"
    );
}
