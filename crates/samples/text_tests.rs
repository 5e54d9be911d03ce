//! Texts as samples: each input and each problem.

use octet_graph::Dim;
use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::DataType;

use super::{Encoded, InputSpec, SampleSettings, decode, decode_with_notes};
use super::{TextPadding, TextTokens};

fn input(name: &str, element: DataType, shape: &[&str]) -> InputSpec {
    let dim = |size: &&str| match size.parse() {
        Ok(size) => Dim::Known(size),
        Err(_) => Dim::Named((*size).into()),
    };
    InputSpec {
        name: name.into(),
        element,
        shape: shape.iter().map(dim).collect(),
    }
}

fn sample(text: &TextTokens) -> Encoded {
    Encoded {
        name: "a.txt:1".into(),
        parts: vec![(
            "a.txt:1.tokens".into(),
            serde_json::to_vec(text).unwrap().into(),
        )],
    }
}

fn pair() -> TextTokens {
    TextTokens {
        ids: vec![101, 7, 102, 8, 102],
        type_ids: vec![0, 0, 0, 1, 1],
        tokens: ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
            .map(String::from)
            .into(),
        padding: TextPadding { id: 9, left: false },
    }
}

fn tensors(text: &TextTokens, inputs: &[InputSpec]) -> Vec<Tensor> {
    decode(&sample(text), inputs, &SampleSettings::default()).unwrap()
}

fn whole(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::new(shape.to_vec(), Values::I64(values.to_vec())).unwrap()
}

#[test]
fn inputs_are_filled_by_their_names_in_their_types() {
    let inputs = [
        input("attention_mask", DataType::Float, &["batch", "seq"]),
        input("input_ids", DataType::Int64, &["batch", "seq"]),
        input("token_type_ids", DataType::Int32, &["batch", "seq"]),
        input("position_ids", DataType::Int64, &["batch", "seq"]),
    ];
    let made = tensors(&pair(), &inputs);
    let mask = Tensor::new(vec![1, 5], Values::F32(vec![1.0; 5])).unwrap();
    let types = Tensor::new(vec![1, 5], Values::I32(vec![0, 0, 0, 1, 1])).unwrap();
    let ids = whole(&[1, 5], &[101, 7, 102, 8, 102]);
    assert_eq!(made, [mask, ids, types, whole(&[1, 5], &[0, 1, 2, 3, 4])]);
}

#[test]
fn a_model_of_fixed_shape_gets_padding_on_the_side_of_the_tokenizer() {
    let shape = &["2", "7"];
    let inputs = ["input_ids", "attention_mask", "position_ids"]
        .map(|name| input(name, DataType::Int64, shape));
    let right = tensors(&pair(), &inputs);
    let twice = |row: &[i64]| whole(&[2, 7], &[row, row].concat());
    assert_eq!(right[0], twice(&[101, 7, 102, 8, 102, 9, 9]));
    assert_eq!(right[1], twice(&[1, 1, 1, 1, 1, 0, 0]));
    assert_eq!(right[2], twice(&[0, 1, 2, 3, 4, 4, 4]));
    let mut text = pair();
    text.padding.left = true;
    let left = tensors(&text, &inputs);
    assert_eq!(left[0], twice(&[9, 9, 101, 7, 102, 8, 102]));
    assert_eq!(left[1], twice(&[0, 0, 1, 1, 1, 1, 1]));
    assert_eq!(left[2], twice(&[0, 0, 0, 1, 2, 3, 4]));
    let decoded = decode_with_notes(&sample(&text), &inputs, &SampleSettings::default()).unwrap();
    let (place, tokens) = decoded.tokens.unwrap();
    assert_eq!((place, tokens.len()), (0, 7));
    assert!(!tokens[1].attended && tokens[1].token.is_empty());
    assert_eq!((tokens[2].token.as_str(), tokens[2].id), ("[CLS]", 101));
    assert_eq!((tokens[5].token.as_str(), tokens[5].type_id), ("b", 1));
}

#[test]
fn caches_are_empty_or_as_long_as_the_model_says() {
    let open = [
        input("input_ids", DataType::Int64, &["batch_size", "seq"]),
        input("attention_mask", DataType::Int64, &["batch_size", "total"]),
        input(
            "past_key_values.0.key",
            DataType::Float,
            &["batch_size", "2", "past", "4"],
        ),
        input(
            "past_key_values.0.value",
            DataType::Float16,
            &["?", "2", "past", "4"],
        ),
        input("use_cache_branch", DataType::Bool, &["1"]),
        input("num_logits_to_keep", DataType::Int64, &[]),
    ];
    let made = tensors(&pair(), &open);
    assert_eq!(made[1].shape(), [1, 5]);
    assert_eq!(
        (made[2].shape(), made[3].shape()),
        (&[1, 2, 0, 4][..], &[1, 2, 0, 4][..])
    );
    assert_eq!(made[4].values(), &Values::Bool(vec![false]));
    assert_eq!(made[5], whole(&[], &[0]));
    let fixed = [
        input("input_ids", DataType::Int64, &["1", "seq"]),
        input("attention_mask", DataType::Int64, &["1", "total"]),
        input(
            "past_key_values.0.key",
            DataType::Float,
            &["1", "2", "3", "4"],
        ),
    ];
    let made = tensors(&pair(), &fixed);
    assert_eq!(made[1], whole(&[1, 8], &[0, 0, 0, 1, 1, 1, 1, 1]));
    assert_eq!(made[2].as_f32(), Some(&[0.0; 24][..]));
}

#[test]
fn an_only_input_of_integers_takes_the_numbers_of_tokens_whatever_its_name() {
    let made = tensors(&pair(), &[input("x", DataType::Int64, &["n", "s"])]);
    assert_eq!(made[0].shape(), [1, 5]);
}

#[test]
fn problems_name_the_input_or_the_file_and_a_remedy() {
    let ids = || input("input_ids", DataType::Int64, &["b", "s"]);
    let states = input("encoder_hidden_states", DataType::Float, &["b", "e", "8"]);
    let cache = input(
        "past_key_values.0.key",
        DataType::Float,
        &["b", "h", "p", "4"],
    );
    let picture = input("pixels", DataType::Float, &["1", "3", "4", "4"]);
    let huge = input(
        "past_key_values.0.key",
        DataType::Float,
        &["1", "9", "9999999", "999"],
    );
    let short = input("input_ids", DataType::Int64, &["b", "4"]);
    let none = TextTokens::default();
    let mut unlike = pair();
    unlike.type_ids.pop();
    for (text, inputs, words) in [
        (
            &pair(),
            vec![ids(), huge],
            ["\"past_key_values.0.key\"", "more than"],
        ),
        (
            &pair(),
            vec![ids(), states],
            ["\"encoder_hidden_states\"", ".npz"],
        ),
        (
            &pair(),
            vec![ids(), cache],
            ["\"past_key_values.0.key\"", "more than one"],
        ),
        (&pair(), vec![picture], ["\"pixels\"", "no input for token"]),
        (&pair(), vec![short], ["5 tokens", "takes 4"]),
        (&none, vec![ids()], ["no tokens", "tokenizer.json"]),
        (
            &unlike,
            vec![ids()],
            ["different lengths", "tokenizer.json"],
        ),
    ] {
        let error = decode(&sample(text), &inputs, &SampleSettings::default());
        let message = error.unwrap_err().to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
}
