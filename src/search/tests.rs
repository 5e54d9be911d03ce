//! Tests of whole searches on small generated models.

use super::judge::powers;
use super::tensors::{TensorChange, changed};
use super::*;
use crate::runtime::Engine;
use crate::samples::SampleSettings;
use crate::session::{ModelFile, Session};
use octet_test_models::networks;
use prost::Message;

/// Random samples of a model, decoded, and the calibrated session.
fn calibrated(proto: &crate::onnx::schema::ModelProto, count: u64) -> (Session, Vec<SearchSample>) {
    let file = ModelFile::new("net.onnx", proto.encode_to_vec().into());
    let mut session = Session::open(file).unwrap();
    let reading = SampleSettings {
        demo: true,
        ..SampleSettings::default()
    };
    let samples: Vec<_> = (0..count)
        .map(|at| session.demo_sample(0, at).unwrap())
        .collect();
    session.begin_calibration(reading.clone()).unwrap();
    session.feed(samples.clone(), &()).unwrap();
    session
        .finish_calibration(crate::stats::Method::default())
        .unwrap();
    let decode = |sample: &crate::samples::Encoded| SearchSample {
        name: sample.name.clone(),
        inputs: session.decode(sample, &reading).unwrap(),
        label: None,
    };
    let decoded = samples.iter().map(decode).collect();
    (session, decoded)
}

fn search(
    session: &mut Session,
    samples: &[SearchSample],
    options: SearchOptions,
) -> Result<BudgetSearch, crate::session::Error> {
    let (choosing, held) = samples.split_at(samples.len().div_ceil(2));
    let settings = Settings::default();
    let mut search = session.begin_search(&settings, options, choosing.to_vec(), held.to_vec())?;
    while session.search_step(&mut search, None, &())? {}
    Ok(search)
}

fn result(search: &BudgetSearch) -> SearchResult {
    search.result().unwrap().0.clone()
}

fn mobile() -> crate::onnx::schema::ModelProto {
    networks::mobile(&["1", "3", "16", "16"])
}

#[test]
fn each_sensitivity_is_the_noise_of_the_whole_model_with_only_this_tensor_rounded() {
    for proto in [mobile(), networks::classifier(&["1", "3", "16", "16"])] {
        let (mut session, samples) = calibrated(&proto, 8);
        let options = SearchOptions::new(Budget::Wide(1));
        let search = search(&mut session, &samples, options).unwrap();
        let known = search.known.as_ref().unwrap();
        assert!(known.found.iter().all(|tensor| tensor.exact));
        // For each measured value its floats in all samples: an output, and scores before a Softmax.
        let run = |model: &Model| -> Vec<Vec<f32>> {
            let engine = Engine::new(model.clone(), Vec::new());
            let mut values = vec![Vec::new(); model.graph.outputs().len()];
            for sample in &samples[..4] {
                let outputs = engine.run(&sample.inputs[..], |_, _| {}, || false).unwrap();
                for (all, output) in values.iter_mut().zip(&outputs) {
                    all.extend_from_slice(output.as_f32().unwrap());
                }
            }
            values
        };
        let float = run(&known.measured);
        for (tensor, found) in known.tensors.iter().zip(&known.found) {
            let change = TensorChange {
                tensor,
                bits: Bits::Eight,
            };
            let other = run(&changed(&known.measured, change, &known.segmented.inputs));
            let shares = float.iter().zip(&other).map(|(a, b)| powers(a, b));
            let shares: Vec<f64> = shares.map(|(noise, signal)| noise / signal).collect();
            // The output shows the noise of what the scores before its Softmax don't depend on.
            let wanted = shares.iter().copied().find(|share| *share > 0.0);
            let wanted = wanted.unwrap_or_default();
            let found = found.noise[&Bits::Eight];
            let name = &tensor.group.name;
            assert!(
                name != "y" || found > 0.0,
                "no noise of the output's rounding"
            );
            assert!(
                (found - wanted).abs() <= 1e-3 * wanted + 1e-12,
                "{name}: {found} {wanted}"
            );
        }
    }
}

#[test]
fn the_first_sample_finds_the_worst_tensors_and_estimates_the_others() {
    let (mut session, samples) = calibrated(&networks::pyramid(&["1", "3", "32", "32"]), 8);
    let mut noises = |exact: usize| {
        let options = SearchOptions {
            exact,
            ..SearchOptions::new(Budget::Wide(1))
        };
        let search = search(&mut session, &samples, options).unwrap();
        let mut tensors = search.sensitivities("net.onnx").unwrap().tensors;
        tensors.sort_by(|a, b| b.noise[&Bits::Eight].total_cmp(&a.noise[&Bits::Eight]));
        tensors
    };
    let truth = noises(usize::MAX);
    assert!(truth.len() >= 8, "{truth:?}");
    for exact in [0, 4] {
        let found = noises(exact);
        let measured = found.iter().filter(|tensor| tensor.exact).count();
        assert_eq!(measured, exact);
        assert_eq!(
            found.iter().filter(|t| !t.exact).count(),
            truth.len() - exact
        );
        for tensor in &truth[..4] {
            let place = found.iter().position(|t| t.name == tensor.name).unwrap();
            assert!(place < 8, "{} is number {place}", tensor.name);
            let (is, wanted) = (found[place].noise[&Bits::Eight], tensor.noise[&Bits::Eight]);
            assert!(
                !found[place].exact || is == wanted,
                "{}: {is} {wanted}",
                tensor.name
            );
            assert!(
                (0.3..3.0).contains(&(is / wanted)),
                "{}: {is} {wanted}",
                tensor.name
            );
        }
    }
}

#[test]
fn predicted_noises_add_up_to_the_measured_one() {
    let (mut session, samples) = calibrated(&mobile(), 8);
    let options = SearchOptions {
        exact: usize::MAX,
        metric: Some(Metric::Sqnr),
        ..SearchOptions::new(Budget::Sqnr(35.0))
    };
    let found = result(&search(&mut session, &samples, options).unwrap());
    let measured: Vec<_> = found
        .points
        .iter()
        .filter_map(|point| Some((point.predicted_sqnr, point.chosen_sqnr?)))
        .filter(|(_, measured)| *measured < 60.0)
        .collect();
    assert!(measured.len() >= 2, "{measured:?}");
    for (predicted, measured) in measured {
        assert!((predicted - measured).abs() < 6.0, "{predicted} {measured}");
    }
    let limit = found.limit.unwrap();
    assert!(found.points[found.point].chosen_error.unwrap().high <= limit);
}

#[test]
fn a_file_of_sensitivities_gives_the_same_choice_and_an_edited_one_another() {
    let (mut session, samples) = calibrated(&mobile(), 6);
    let first = search(
        &mut session,
        &samples,
        SearchOptions::new(Budget::Sqnr(30.0)),
    )
    .unwrap();
    let file = first.sensitivities("net.onnx").unwrap();
    let read = Sensitivities::read(&file.text().unwrap()).unwrap();
    let again = |session: &mut Session, file: Sensitivities| {
        let options = SearchOptions {
            sensitivities: Some(file),
            ..SearchOptions::new(Budget::Sqnr(30.0))
        };
        result(&search(session, &samples, options).unwrap())
    };
    assert_eq!(again(&mut session, read.clone()), result(&first));
    let mut edited = read;
    let chosen = result(&first).settings;
    let tensor = edited
        .tensors
        .iter_mut()
        .find(|t| !chosen.tensors.contains_key(&t.name));
    let tensor = tensor.unwrap();
    *tensor.noise.get_mut(&Bits::Eight).unwrap() = 0.5;
    let name = tensor.name.clone();
    let other = again(&mut session, edited);
    assert!(
        other.settings.tensors.contains_key(&name),
        "{:?}",
        other.settings.tensors
    );
}

#[test]
fn the_settings_of_the_choice_make_a_file_of_the_predicted_size() {
    let (mut session, samples) = calibrated(&mobile(), 6);
    let budget = Budget::Bytes(Amount::Absolute(7500.0));
    let found = result(&search(&mut session, &samples, SearchOptions::new(budget)).unwrap());
    assert_eq!(found.verdict, BudgetVerdict::Met);
    let quantized = session.quantize(&found.settings).unwrap();
    assert_eq!(quantized.summary.bytes_after, found.chosen.bytes);
    let predicted = found.points[found.point].bytes;
    let actual = found.chosen.bytes as f64;
    assert!(
        (predicted / actual - 1.0).abs() < 0.15,
        "{predicted} {actual}"
    );
    assert!(actual <= 7500.0, "{actual}");
    let document = serde_json::to_value(&found.settings).unwrap();
    assert_eq!(Settings::from_value(document).unwrap(), found.settings);
}

#[test]
fn a_budget_of_wide_tensors_widens_no_more_than_that() {
    let (mut session, samples) = calibrated(&mobile(), 6);
    let found = search(&mut session, &samples, SearchOptions::new(Budget::Wide(3))).unwrap();
    let found = result(&found);
    assert_eq!(
        found.points[found.point].counts,
        [0, found.tensors.len() - 3, 3, 0]
    );
    assert!(found.bound_sqnr >= found.points[found.point].predicted_sqnr - 1e-9);
    assert!(
        found
            .settings
            .tensors
            .values()
            .all(|own| own.float != Some(true))
    );
    let none = search(&mut session, &samples, SearchOptions::new(Budget::Wide(0))).unwrap();
    let none = result(&none);
    assert_eq!(none.chosen.wide, 0);
    assert!(none.chosen.held_sqnr < found.chosen.held_sqnr);
}

#[test]
fn a_tensor_that_sixteen_bits_do_not_help_becomes_float() {
    let (mut session, samples) = calibrated(&mobile(), 6);
    let options = || SearchOptions::new(Budget::Wide(1));
    let first = search(&mut session, &samples, options()).unwrap();
    let mut file = first.sensitivities("net.onnx").unwrap();
    let tensor = file
        .tensors
        .iter_mut()
        .find(|tensor| !tensor.weight)
        .unwrap();
    tensor.noise.insert(Bits::Eight, 0.5);
    tensor.noise.insert(Bits::Sixteen, 0.5);
    let name = tensor.name.clone();
    let options = SearchOptions {
        sensitivities: Some(file),
        ..options()
    };
    let found = result(&search(&mut session, &samples, options).unwrap());
    assert_eq!(found.settings.tensors[&name].float, Some(true));
    assert_eq!(found.chosen.wide, 0);
}

#[test]
fn what_cannot_be_searched_is_refused_in_words() {
    let (mut session, samples) = calibrated(&mobile(), 4);
    let mut refusal = |samples: &[SearchSample], options: SearchOptions| match search(
        &mut session,
        samples,
        options,
    ) {
        Ok(_) => panic!("the search had a result"),
        Err(error) => error.to_string(),
    };
    let sqnr = || SearchOptions::new(Budget::Sqnr(30.0));
    let few = refusal(&samples[..1], sqnr());
    assert!(few.contains("at least 2 samples"), "{few}");
    let small = refusal(
        &samples,
        SearchOptions::new(Budget::Bytes(Amount::Absolute(10.0))),
    );
    assert!(
        small.contains("can't be met: the best that these candidates reach is"),
        "{small}"
    );
    let narrow = SearchOptions {
        weights: vec![Bits::Four, Bits::Eight],
        activations: vec![Bits::Eight],
        ..SearchOptions::new(Budget::Sqnr(90.0))
    };
    let narrow = refusal(&samples, narrow);
    assert!(narrow.contains(" dB; allow more"), "{narrow}");
    let labels = SearchOptions {
        metric: Some(Metric::Labels),
        ..sqnr()
    };
    assert!(refusal(&samples, labels).contains("--labels"));
    let no_eight = SearchOptions {
        weights: vec![Bits::Four],
        ..sqnr()
    };
    assert!(refusal(&samples, no_eight).contains("8 bits must be among"));
}

#[test]
fn few_samples_can_not_decide_a_budget_of_answers() {
    let (mut session, samples) = calibrated(&networks::classifier(&["1", "3", "16", "16"]), 8);
    let options = SearchOptions::new(Budget::Accuracy(0.01));
    let found = result(&search(&mut session, &samples, options).unwrap());
    assert_eq!(
        (found.metric, found.verdict),
        (Metric::Agreement, BudgetVerdict::Undecidable)
    );
    assert!(
        found.answer.contains("not decidable with so few samples"),
        "{}",
        found.answer
    );
    assert!(found.samples_needed.unwrap() > 300);
}

#[test]
fn one_thread_and_four_give_the_same_result() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let (mut session, samples) = calibrated(&mobile(), 6);
            let options = SearchOptions::new(Budget::Sqnr(30.0));
            let search = search(&mut session, &samples, options).unwrap();
            let file = search.sensitivities("net.onnx").unwrap().text().unwrap();
            (result(&search), file)
        })
    };
    assert_eq!(run(1), run(4));
}

#[test]
fn halves_share_no_sample_and_follow_the_seed() {
    let (choosing, held) = halves(11, 0);
    assert_eq!((choosing.len(), held.len()), (6, 5));
    let mut all = [choosing.clone(), held].concat();
    all.sort_unstable();
    assert_eq!(all, (0..11).collect::<Vec<_>>());
    assert_eq!(halves(11, 0).0, choosing);
    assert!((1..4).any(|seed| halves(11, seed).0 != choosing));
}
