//! Roles and mixed bits on small graphs.

use super::super::plan_blocks;
use super::super::roles::{ProductRole, product_roles};
use super::small_graphs::{INNER, KV, SmallGraph, WIDTH, WORDS, grouped, plain};
use super::{MixedBits, MixedChoice};
use crate::planned_model::RefusedConstants;
use crate::{BlockChoice, BlockSettings};
use crate::{QuantizeError, Quantized, Settings};
use octet_graph::{Model, Node};

/// Sizes and layers of the products with a role.
fn of_role(model: &Model, role: ProductRole) -> Vec<(usize, usize, usize)> {
    let roles = product_roles(model);
    assert!(roles.by_name.is_empty());
    let products = roles.products.iter().filter(|one| one.role == role);
    products.map(|p| (p.rows, p.columns, p.layer)).collect()
}

#[test]
fn roles_of_grouped_attention_come_from_the_graph() {
    let model = grouped(3);
    assert_eq!(product_roles(&model).layers, 3);
    assert_eq!(of_role(&model, ProductRole::Head), [(WIDTH, WORDS, 3)]);
    let values = of_role(&model, ProductRole::Value);
    let packed = INNER + 2 * KV;
    assert_eq!(values, [(WIDTH, KV, 0), (WIDTH, packed, 1), (WIDTH, KV, 2)]);
    let downs = of_role(&model, ProductRole::Down);
    assert_eq!(downs, [0, 1, 2].map(|layer| (INNER, WIDTH, layer)));
    // Query, key, output projection, gate and up.
    assert_eq!(of_role(&model, ProductRole::Other).len(), 5 + 3 + 5);
}

#[test]
fn roles_of_plain_attention_come_from_the_graph() {
    let model = plain(2);
    assert_eq!(product_roles(&model).layers, 2);
    assert_eq!(of_role(&model, ProductRole::Head), [(WIDTH, WORDS, 2)]);
    let values = of_role(&model, ProductRole::Value);
    assert_eq!(values, [0, 1].map(|layer| (WIDTH, WIDTH, layer)));
    let products = product_roles(&model).products;
    // The third of the products of a layer; the first two are the query's and the key's.
    assert_eq!(products[2].role, ProductRole::Value);
    let downs = of_role(&model, ProductRole::Down);
    assert_eq!(downs, [0, 1].map(|layer| (INNER, WIDTH, layer)));
}

#[test]
fn names_help_where_the_graph_shows_nothing() {
    let mut graph = SmallGraph::default();
    let before = graph.product("x", WIDTH, WIDTH);
    let mixed = graph.theirs("StateSpace", &[&before]);
    let after = graph.product(&mixed, WIDTH, WIDTH);
    let end = graph.norm(&after);
    graph.nodes[0].name = Some("l0.v_proj".into());
    let roles = product_roles(&graph.finish(&end));
    assert_eq!(roles.products[0].role, ProductRole::Value);
    assert_eq!(Vec::from_iter(roles.by_name), [ProductRole::Value]);
}

fn quantize(
    model: &Model,
    settings: &BlockSettings,
    choices: &[(&str, BlockChoice)],
) -> Result<(Quantized, u64), QuantizeError> {
    let own = |node: &Node| {
        let choice = choices.iter().find(|(title, _)| *title == node.title());
        choice.map_or(settings.clone(), |(_, choice)| settings.with(choice))
    };
    let mixed = MixedChoice::new(model, settings, &own, &[], None)?;
    let of = |node: &Node| mixed.apply(node, own(node));
    let (mut quantized, recipes) =
        plan_blocks(model, &of, &[], None, &RefusedConstants::default(), None)?;
    mixed.report(model, &mut quantized);
    let computed = recipes.iter().map(|recipe| {
        let recipe = recipe.start().unwrap();
        recipe.outputs().iter().map(|one| one.bytes).sum::<u64>()
    });
    let mut bytes = computed.sum::<u64>();
    let constants = quantized.model.graph.initializers.iter();
    for tensor in constants.filter(|tensor| !tensor.is_external()) {
        bytes += tensor.stored_bytes().unwrap();
    }
    Ok((quantized, bytes))
}

fn mixed(mixed: MixedBits) -> BlockSettings {
    BlockSettings {
        mixed: Some(mixed),
        ..BlockSettings::default()
    }
}

fn eight(quantized: &Quantized) -> Vec<&str> {
    let roles = quantized.nodes.iter();
    roles.filter_map(|node| node.mixed.as_deref()).collect()
}

/// The number of products with this many bits.
fn with_bits(quantized: &Quantized, bits: i64) -> usize {
    let nodes = quantized.model.graph.nodes().iter();
    nodes.filter(|node| node.int("bits") == Some(bits)).count()
}

#[test]
fn the_rule_is_onnxruntime_genais() {
    let settings = mixed(MixedBits::KQuantMixed);
    let (quantized, _) = quantize(&grouped(10), &settings, &[]).unwrap();
    // [i for i in range(10) if i < 10 / 8 or i >= 70 / 8 or (i - round(10 / 8)) % 3 == 2]
    let layers = [0, 1, 3, 6, 9];
    let mut wanted = Vec::new();
    for layer in layers {
        wanted.push(format!("8 bits: value projection of layer {layer}"));
        wanted.push(format!("8 bits: down projection of layer {layer}"));
    }
    wanted.push("8 bits: head".to_owned());
    assert_eq!(eight(&quantized), wanted);
    assert_eq!(with_bits(&quantized, 8), 11);
    let note = &quantized.notes[0];
    assert!(
        note.contains("8 bits for 11 layers: the head, 5 value projections (layers 0, 1, 3, 6, 9)"),
        "{note}"
    );
    let (plain, _) = quantize(&plain(2), &settings, &[]).unwrap();
    // The head and the first of two layers.
    assert_eq!(with_bits(&plain, 8), 3);
    assert_eq!(plain.notes.len(), 1, "{:?}", plain.notes);
}

#[test]
fn a_tied_table_has_one_form_with_the_head() {
    let settings = BlockSettings {
        embeddings: true,
        ..mixed(MixedBits::KQuantMixed)
    };
    let (quantized, _) = quantize(&grouped(2), &settings, &[]).unwrap();
    let nodes = quantized.model.graph.nodes();
    let gather = nodes
        .iter()
        .find(|node| node.operator().ends_with("GatherBlockQuantized"));
    assert_eq!(gather.unwrap().int("bits"), Some(8));
    assert_eq!(eight(&quantized)[0], "8 bits: head");
}

#[test]
fn a_budget_is_spent_by_importance_and_never_exceeded() {
    let model = grouped(4);
    let (_, least) = quantize(&model, &BlockSettings::default(), &[]).unwrap();
    let all = BlockSettings {
        bits: 8,
        ..BlockSettings::default()
    };
    let (_, most) = quantize(&model, &all, &[]).unwrap();
    let mut counts = Vec::new();
    for budget in [
        least,
        least + WORDS as u64 * 32,
        least + 9000,
        (least + most) / 2,
        most,
    ] {
        let (quantized, bytes) = quantize(&model, &mixed(MixedBits::Bytes(budget)), &[]).unwrap();
        assert!(bytes <= budget, "{bytes} of {budget}");
        let used = format!("{bytes} of {budget} bytes are used");
        assert!(quantized.notes[0].ends_with(&used), "{:?}", quantized.notes);
        let raised = eight(&quantized);
        assert_eq!(raised.contains(&"8 bits: head"), budget > least);
        counts.push(raised.len());
    }
    assert_eq!((counts[0], counts[1]), (0, 1));
    assert!(counts.is_sorted(), "{counts:?}");
    assert_eq!(counts[4], product_roles(&model).products.len());
    let (quantized, _) = quantize(&model, &mixed(MixedBits::Bytes(1)), &[]).unwrap();
    let note = &quantized.notes[0];
    assert!(note.contains("more than the budget of 1"), "{note}");
}

#[test]
fn average_bits_count_scales() {
    let model = grouped(4);
    // Four bits and a scale of 32 bits for 32 numbers.
    let (none, _) = quantize(&model, &mixed(MixedBits::AverageBits(5.0)), &[]).unwrap();
    assert_eq!(eight(&none).len(), 0);
    let (some, _) = quantize(&model, &mixed(MixedBits::AverageBits(6.0)), &[]).unwrap();
    let raised = eight(&some);
    assert!(raised.contains(&"8 bits: head") && raised.len() < 20);
    let (all, _) = quantize(&model, &mixed(MixedBits::AverageBits(9.0)), &[]).unwrap();
    assert_eq!(with_bits(&all, 4), 0);
    for wrong in [0.5, 17.0, f64::NAN] {
        let error = quantize(&model, &mixed(MixedBits::AverageBits(wrong)), &[]).unwrap_err();
        assert!(error.to_string().contains("average_bits"), "{error}");
    }
}

#[test]
fn bits_of_a_layer_win() {
    let model = grouped(1);
    let products = product_roles(&model).products;
    let head = products.iter().find(|one| one.role == ProductRole::Head);
    let title = model.graph.nodes()[head.unwrap().node].title();
    let choice = BlockChoice {
        bits: Some(2),
        ..BlockChoice::default()
    };
    let settings = mixed(MixedBits::KQuantMixed);
    let (quantized, _) = quantize(&model, &settings, &[(title, choice)]).unwrap();
    assert_eq!(with_bits(&quantized, 2), 1);
    assert_eq!(eight(&quantized).len(), 2);
}

#[test]
fn missing_roles_and_settings_without_effect_are_noted() {
    let mut graph = SmallGraph::default();
    let one = graph.product("x", WIDTH, WIDTH);
    let end = graph.norm(&one);
    let model = graph.finish(&end);
    let settings = mixed(MixedBits::KQuantMixed);
    let (quantized, _) = quantize(&model, &settings, &[]).unwrap();
    assert!(quantized.notes[0].contains("no layer has 8 bits"));
    for role in ["head", "value projection", "down projection"] {
        let note = format!("the graph shows no {role}; give such layers `bits: 8`");
        assert!(
            quantized.notes.iter().any(|one| one.contains(&note)),
            "{note}"
        );
    }
    let settings = BlockSettings {
        bits: 8,
        ..settings
    };
    let (quantized, _) = quantize(&model, &settings, &[]).unwrap();
    assert!(quantized.notes[0].contains("mixed bits have no effect"));
}

#[test]
fn mixed_bits_are_read_from_the_document() {
    for (text, wanted) in [
        (r#""k_quant_mixed""#, MixedBits::KQuantMixed),
        (r#"{ "bytes": 1000000 }"#, MixedBits::Bytes(1_000_000)),
        (r#"{ "average_bits": 5.5 }"#, MixedBits::AverageBits(5.5)),
    ] {
        let text = format!(r#"{{ "scheme": "blocks", "blocks": {{ "mixed": {text} }} }}"#);
        let settings = Settings::from_value(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(settings.blocks.mixed, Some(wanted));
    }
    let hqq = r#"{ "method": "hqq", "mixed": "k_quant_mixed" }"#;
    let settings: BlockSettings = serde_json::from_str(hqq).unwrap();
    let error = settings.check().unwrap_err().to_string();
    assert!(error.contains("hqq has no 8 bits"), "{error}");
}
