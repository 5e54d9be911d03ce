//! Tests of tables as samples.

use super::*;
use crate::{Encoded, SampleSettings, decode};

fn input(name: &str, element: DataType, shape: Vec<Dim>) -> InputSpec {
    InputSpec {
        name: name.into(),
        element,
        shape,
    }
}

fn features_of(count: usize) -> Vec<InputSpec> {
    vec![input(
        "x",
        DataType::Float,
        vec![Dim::Named("batch".into()), Dim::Known(count)],
    )]
}

fn decoded(text: &str, inputs: &[InputSpec]) -> Result<Vec<(String, Vec<Tensor>)>, SampleError> {
    let all = rows("t.csv", text.as_bytes(), inputs, 3)?;
    let one = |(path, bytes): (String, Bytes)| {
        let sample = Encoded {
            name: path.clone(),
            parts: vec![(path.clone(), bytes)],
        };
        Ok((path, decode(&sample, inputs, &SampleSettings::default())?))
    };
    all.into_iter().map(one).collect()
}

fn message(text: &str, inputs: &[InputSpec]) -> String {
    decoded(text, inputs).unwrap_err().to_string()
}

#[test]
fn a_row_is_a_sample_and_columns_that_are_no_features_are_left_out() {
    for text in [
        "id,a,b,label\n1,0.5,2,cat\n2,-1,3,dog\n",
        "a;b;target\n0.5;2;1\n-1;3;0\n",
        "\u{feff}a\tb\n0.5\t2\n-1\t3\n",
        "0.5,2\n-1,3",
    ] {
        let found = decoded(text, &features_of(2)).unwrap();
        let values: Vec<_> = found
            .iter()
            .map(|(_, all)| all[0].as_f32().unwrap())
            .collect();
        assert_eq!(values, [[0.5, 2.0], [-1.0, 3.0]], "{text}");
        assert_eq!(found[0].1[0].shape(), [1, 2]);
    }
    let open = vec![input(
        "x",
        DataType::Float,
        vec![Dim::Known(1), Dim::Unknown],
    )];
    assert_eq!(
        decoded("a,b,y\n1,2,3", &open).unwrap()[0].1[0].shape(),
        [1, 2]
    );
}

#[test]
fn many_rows_are_spread_over_the_file() {
    let text: String = (0..9).map(|row| format!("{row},0\n")).collect();
    let names: Vec<String> = (decoded(&text, &features_of(2)).unwrap().into_iter())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["t.csv:1.row", "t.csv:4.row", "t.csv:7.row"]);
}

#[test]
fn inputs_that_are_columns_are_found_by_name_in_their_types() {
    let inputs = vec![
        input("Age_", DataType::Int64, vec![Dim::Unknown, Dim::Known(1)]),
        input("fare", DataType::Double, vec![Dim::Unknown]),
        input("Single", DataType::Bool, vec![]),
    ];
    let found = decoded("fare,age,single\n7.5,30,true\n", &inputs).unwrap();
    let values: Vec<_> = found[0].1.iter().map(|t| t.values().clone()).collect();
    let wanted = [
        Values::I64(vec![30]),
        Values::F64(vec![7.5]),
        Values::Bool(vec![true]),
    ];
    assert_eq!(values, wanted);
    assert!(message("fare,single\n1,0\n", &inputs).contains("no column is called \"Age_\""));
    assert!(message("fare,age,single\n1,3.5,0\n", &inputs).contains("\"Age_\""));
}

#[test]
fn a_table_that_does_not_fit_is_refused_with_its_columns() {
    let said = message("a,b,c\n1,2,3\n", &features_of(2));
    assert!(
        said.contains("takes 2 columns") && said.contains("a, b, c"),
        "{said}"
    );
    assert!(message("a,b\n", &features_of(2)).contains("no rows"));
    assert!(message("a,b\n1,\"2\n", &features_of(2)).contains("line 2"));
    let said = message("a,b\n1,2\n3,\n", &features_of(2));
    assert!(
        said.contains("t.csv:3") && said.contains("\"b\" holds \"\""),
        "{said}"
    );
}

#[test]
fn only_models_of_columns_take_rows() {
    let float = |shape| vec![input("x", DataType::Float, shape)];
    assert!(takes_rows(&features_of(4)));
    assert!(!takes_rows(&float(vec![
        Dim::Known(1),
        Dim::Known(3),
        Dim::Known(8)
    ])));
    assert!(!takes_rows(&float(vec![Dim::Known(8), Dim::Known(3)])));
    let ids = vec![input(
        "input_ids",
        DataType::Int64,
        vec![Dim::Unknown, Dim::Unknown],
    )];
    assert!(!takes_rows(&ids));
    assert!(!takes_rows(&[input(
        "s",
        DataType::String,
        vec![Dim::Known(1)]
    )]));
}
