//! A comparison as text: verdict, outputs, the worst layers and warnings.

use std::fmt::Write;

use octet::compare::{Comparison, LayerError, Verdict};

use super::Failure;

/// The most steps to try that are printed.
const MAX_STEPS: usize = 2;

/// The whole comparison, with this many layers.
pub fn text(comparison: &Comparison, top: usize) -> Result<String, Failure> {
    let mut out = String::new();
    match comparison.samples {
        1 => writeln!(out, "1 sample")?,
        several => writeln!(out, "{several} samples")?,
    }
    if let Some(verdict) = &comparison.verdict {
        write_verdict(&mut out, verdict)?;
    }
    match &comparison.headline {
        Some(name) => writeln!(out, "worst output: {name}")?,
        None => writeln!(
            out,
            "no output is a computed float, so the accuracy cannot be judged"
        )?,
    }
    for output in &comparison.outputs {
        let apart = &output.apart;
        if !output.kind.is_judged() {
            writeln!(out, "output {}: {}, not judged", output.name, output.kind)?;
            continue;
        }
        write!(
            out,
            "output {} ({}): SQNR {:.1} dB, cosine {:.6}, max difference {:.5}, mean difference {:.6}",
            output.name, output.kind, apart.sqnr, apart.cosine, apart.max, apart.mean
        )?;
        if let Some(parts) = &output.parts {
            write!(
                out,
                "; boxes only {:.1} dB, scores only {:.1} dB",
                parts.boxes, parts.scores
            )?;
        }
        match &output.boxes {
            Some(boxes) if boxes.confident + boxes.extra > 0 => write!(
                out,
                "; {} of {} confident boxes matched, {} extra",
                boxes.matched, boxes.confident, boxes.extra
            )?,
            Some(_) => out.write_str("; no confident boxes")?,
            None => {}
        }
        if let (Some(weights), Some(activations)) = (output.weights_only, output.activations_only) {
            write!(
                out,
                "; weights only {weights:.1} dB, activations only {activations:.1} dB"
            )?;
        }
        if let (Some(first), Some(five)) = (output.top1, output.top5) {
            write!(
                out,
                "; top-1 agreement {:.1} %, in the top 5 {:.1} %",
                first * 100.0,
                five * 100.0
            )?;
        }
        if let Some(tokens) = &output.tokens {
            write!(
                out,
                "; KL divergence {:.6} nats over {} positions",
                tokens.kl, tokens.positions
            )?;
        }
        if let Some((float, quantized)) = output.tokens.and_then(|tokens| tokens.perplexity) {
            write!(
                out,
                "; perplexity: float {float:.3}, quantized {quantized:.3}"
            )?;
        }
        if let Some((float, quantized)) = output.accuracy {
            write!(
                out,
                "; accuracy: float {:.1} %, quantized {:.1} %",
                float * 100.0,
                quantized * 100.0
            )?;
        }
        writeln!(out)?;
    }
    if let Some(reason) = &comparison.layers_failed {
        writeln!(
            out,
            "\nonly the outputs could be compared, not the layers: {reason}"
        )?;
    } else {
        write_layers(&mut out, &comparison.layers, top)?;
    }
    for warning in &comparison.warnings {
        writeln!(out, "\n{}", warning.message)?;
    }
    Ok(out)
}

fn write_verdict(out: &mut String, verdict: &Verdict) -> Result<(), Failure> {
    writeln!(out, "verdict: {}", verdict.decision)?;
    writeln!(out, "  {}: {}", verdict.output, verdict.reason)?;
    for step in verdict.next.iter().take(MAX_STEPS) {
        match step.settings() {
            Some(settings) => writeln!(out, "  to try: {step} (--config '{settings}')")?,
            None => writeln!(out, "  to try: {step}")?,
        }
    }
    Ok(())
}

/// The layers with the largest own error, as a table.
fn write_layers(out: &mut String, layers: &[LayerError], top: usize) -> Result<(), Failure> {
    let mut worst: Vec<&LayerError> = layers.iter().filter(|l| l.harm > 0.0).collect();
    worst.sort_by(|a, b| b.harm.total_cmp(&a.harm));
    writeln!(
        out,
        "\n share   own dB    reached  weights dB  activations dB  clipped  layer"
    )?;
    for layer in worst.iter().take(top) {
        let decibels = |value: Option<f64>| value.map_or("-".to_string(), |v| format!("{v:.1}"));
        writeln!(
            out,
            "{:>5.1}%  {:>8}  {:>9.1}  {:>10}  {:>14}  {:>6.2}%  {} ({})",
            layer.harm * 100.0,
            decibels(layer.added.map(|a| a.sqnr)),
            layer.accumulated.sqnr,
            decibels(layer.weights_only),
            decibels(layer.activations_only),
            layer.clipped * 100.0,
            layer.layer,
            layer.operator
        )?;
    }
    Ok(())
}
