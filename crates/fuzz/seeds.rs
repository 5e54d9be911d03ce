//! Valid files, made here: models of every kind, samples, settings, journals, statistics.

use std::collections::BTreeMap;
use std::io::Write;

use octet_onnx::in_memory::{Tensor, Values};
use octet_onnx::schema::{ModelProto, TensorProto};
use octet_quantize::Settings;
use octet_stats::{HistogramLayout, Im2colView, InputGram, NumpyHistogram};
use octet_stats::{PassStatistics, TensorStatistics};
use octet_stream::{Conversion, ConversionJournal, OutputFiles};
use octet_test_models::valid_models::valid_model;
use octet_test_models::{RandomChoice, networks, npy, numbers, qdq};
use prost::Message;
use serde_json::json;

use crate::sample::FILES;

/// Networks of common kinds, and models of few operators.
pub fn models() -> Vec<Vec<u8>> {
    let mut random = RandomChoice(1);
    let networks = networks().into_iter();
    let few = (0..24).map(|_| valid_model(&mut random));
    networks.chain(few).map(|model| written(&model)).collect()
}

fn networks() -> Vec<ModelProto> {
    let fixed = ["1", "3", "16", "16"];
    vec![
        networks::classifier(&["n", "3", "h", "w"]),
        networks::mobile(&fixed),
        networks::pyramid(&fixed),
        networks::encoder(&["n", "length"]),
        networks::patches(&["n", "3", "16", "16"]),
        networks::anchors(&fixed),
        networks::selection(&["", "3", "", ""]),
        networks::choices(&fixed),
        networks::loops(&fixed),
        networks::counted(&fixed),
        networks::recurrent(&["t", "1", "5"]),
    ]
}

fn written(model: &ModelProto) -> Vec<u8> {
    octet_onnx::write(model).unwrap()
}

/// Models with pairs of QuantizeLinear and DequantizeLinear, and with dynamic integers.
pub fn quantized_models() -> Vec<Vec<u8>> {
    let mut models = vec![written(&qdq::network().to_proto())];
    for scheme in ["weights", "dynamic", "blocks"] {
        let settings = Settings::from_value(json!({ "scheme": scheme })).unwrap();
        models.extend(networks().into_iter().filter_map(|model| {
            let model = octet_graph::Model::from_proto(model).unwrap();
            let model = octet_graph::prepare::prepare(model).unwrap().model;
            let quantized = octet_quantize::apply(&model, &settings, None).ok()?;
            Some(written(&quantized.model.to_proto()))
        }));
    }
    models
}

/// A sample of each kind of file, for each kind of model.
pub fn samples() -> Vec<Vec<u8>> {
    let values = numbers(1, 192);
    let data: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let array = npy("<f4", "(1, 3, 8, 8)", &data);
    let tensor = Tensor::new(vec![1, 3, 8, 8], Values::F32(values)).unwrap();
    let contents = [
        array.clone(),
        archive(&[("x.npy", &array)]),
        TensorProto::from_tensor("x", &tensor).encode_to_vec(),
        picture(image::ImageFormat::Png),
        picture(image::ImageFormat::Jpeg),
        json!({ "ids": [101, 7, 9, 102], "tokens": ["[CLS]", "a", "b", "[SEP]"] })
            .to_string()
            .into_bytes(),
    ];
    let ids: Vec<u8> = [1_i64, 2, 3]
        .iter()
        .flat_map(|id| id.to_le_bytes())
        .collect();
    let text = npy("<i8", "(1, 3)", &ids);
    let named = archive(&[("input_ids.npy", &text), ("attention_mask.npy", &text)]);
    let of = |kind: usize, model: u8, content: &[u8]| [&[kind as u8, model], content].concat();
    let each = contents.iter().enumerate().take(FILES.len());
    let mut seeds: Vec<Vec<u8>> = each
        .flat_map(|(kind, content)| (0..3).map(move |model| of(kind, model, content)))
        .collect();
    seeds.push(of(1, 1, &named));
    seeds
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn picture(format: image::ImageFormat) -> Vec<u8> {
    let pixel = |x, y| image::Rgb([x as u8 * 9, y as u8 * 7, 100]);
    let mut file = std::io::Cursor::new(Vec::new());
    image::DynamicImage::ImageRgb8(image::RgbImage::from_fn(12, 10, pixel))
        .write_to(&mut file, format)
        .unwrap();
    file.into_inner()
}

/// Settings of each scheme, with the nested ones written out.
pub fn settings() -> Vec<Vec<u8>> {
    let documents = [
        json!({}),
        json!({ "method": "percentile:99.9", "activations": { "type": "u16", "symmetric": true } }),
        json!({ "scheme": "blocks", "blocks": { "size": 32, "bits": 4, "method": "hqq" } }),
        json!({ "scheme": "dynamic", "weights": { "type": "i8", "perChannel": false } }),
        json!({ "scheme": "float16", "float16": {} }),
        json!({ "tensors": { "x": { "range": [-1.0, 2.5], "type": "i16" } }, "nodes": { "a": { "float": true } } }),
        json!({ "by_name": { "^conv": { "float": true } }, "by_operator": { "Conv": { "method": "mse" } } }),
        json!({ "image": { "resize": "letterbox", "mean": [0, 0, 0], "height": 20 } }),
        json!({ "finetune": { "method": "adaround" }, "rounding": "gptq", "guard": { "budget": 0.5 } }),
    ];
    let written = serde_json::to_vec(&Settings::default()).unwrap();
    let documents = documents.iter().map(|one| one.to_string().into_bytes());
    documents.chain([written]).collect()
}

/// The journal of a conversion that has just been planned, for each network that can be converted.
pub fn journals() -> Vec<Vec<u8>> {
    let settings = Settings::from_value(json!({ "scheme": "float16" })).unwrap();
    let output = OutputFiles {
        model: "model_fp16.onnx".into(),
        limit: 1 << 16,
    };
    let planned = networks().into_iter().filter_map(|model| {
        let conversion = Conversion::new(model, &settings, output.clone()).ok()?;
        let journal = ConversionJournal::new("0", vec![], &settings, &output, &conversion);
        Some(journal.to_json().into_bytes())
    });
    planned.collect()
}

/// Statistics of each pass.
pub fn statistics() -> Vec<Vec<u8>> {
    let values = numbers(2, 96);
    let mut tensor = TensorStatistics::new();
    tensor.observe(&values);
    tensor.observe_channel_means(&values, &[2, 3, 4, 4], 1);
    tensor.observe_abs_max(&values, &[2, 3, 4, 4], 1);
    tensor.end_sample();
    let layout = HistogramLayout {
        bins: 64,
        magnitudes: true,
    };
    let mut histogram = NumpyHistogram::new(layout, &tensor);
    histogram.count(&values);
    let mut gram = InputGram::new(Im2colView::Rows, 1.0);
    gram.observe(&values, &[24, 4]);
    let passes = [
        PassStatistics::Tensors(BTreeMap::from([
            ("x".to_owned(), tensor),
            ("y".to_owned(), TensorStatistics::from_values(&[0.0, -0.0])),
        ])),
        PassStatistics::Histograms(BTreeMap::from([("x".to_owned(), histogram)])),
        PassStatistics::InputGrams(BTreeMap::from([("x".to_owned(), vec![gram])])),
    ];
    passes.iter().map(PassStatistics::bytes).collect()
}
