//! The report as one self-contained HTML page. It can be opened from a disk or attached to an
//! issue.
//!
//! Its content security policy forbids every request. All text that comes from a model is escaped.

use std::fmt::Write;

use super::ModelSummary;
use super::stored_profile::StoredProfile;
use crate::compare::Comparison;
use crate::profile::LayerTable;
use crate::profile::columns::Column;

/// Contents of the report.
pub(super) struct HtmlReport<'a> {
    pub(super) summary: &'a ModelSummary,
    pub(super) profiles: &'a [StoredProfile],
    pub(super) comparison: Option<&'a Comparison>,
    pub(super) yaml: &'a str,
}

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}\
th,td{padding:.25rem .6rem;border-bottom:1px solid #8884;text-align:left;white-space:nowrap;max-width:26rem;overflow:hidden;\
text-overflow:ellipsis}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th button{font:inherit;font-weight:600;\
background:none;border:0;padding:.2rem;color:inherit;cursor:pointer;min-height:24px}tbody tr:hover{background:#8881}\
.bar{background:linear-gradient(90deg,#d9480f55 var(--w),transparent var(--w))}pre{overflow-x:auto;font-size:.8rem}\
.warning{border-left:4px solid #d9480f;padding:.3rem .8rem;margin:.6rem 0;background:#d9480f14}dl{display:grid;\
grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{font-weight:600}dd{margin:0;overflow-wrap:anywhere}";

/// Sorts a table by the column that is clicked. Without the script the page is complete, in
/// execution order.
const SCRIPT: &str = "\
for(const button of document.querySelectorAll('th button'))button.addEventListener('click',()=>{\
const th=button.parentElement,table=th.closest('table'),body=table.tBodies[0],place=th.cellIndex;\
const down=th.getAttribute('aria-sort')!=='descending';\
for(const other of th.parentElement.cells)other.removeAttribute('aria-sort');\
th.setAttribute('aria-sort',down?'descending':'ascending');\
const value=row=>{const cell=row.cells[place],number=cell.dataset.v;return number===undefined?cell.textContent:Number(number)};\
const rows=[...body.rows].sort((a,b)=>{const x=value(a),y=value(b);return (x<y?-1:x>y?1:0)*(down?-1:1)});\
body.append(...rows)})";

/// Writes the report.
pub(super) fn write(report: &HtmlReport<'_>) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.push_str(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\
         <meta name=\"viewport\" content=\"width=device-width\">",
    );
    let name = escaped(&report.summary.name);
    let _ = write!(
        out,
        "<title>Octet: {name}</title><style>{STYLE}</style></head><body><h1>{name}</h1>"
    );
    summary(&mut out, report.summary);
    if let Some(comparison) = report.comparison {
        verdict(&mut out, comparison);
        warnings(&mut out, comparison);
        outputs(&mut out, comparison);
        errors(&mut out, comparison);
    }
    for stored in report.profiles {
        layers(&mut out, &stored.name, &stored.table);
    }
    let _ = writeln!(
        out,
        "<details><summary>The whole report as YAML</summary><pre>{}</pre></details><script>{SCRIPT}</script></body></html>",
        escaped(report.yaml)
    );
    out
}

/// Escapes text for HTML, attribute values included.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

fn summary(out: &mut String, summary: &ModelSummary) {
    let pairs = [
        ("Producer", summary.producer.clone()),
        (
            "Size",
            format!(
                "{} bytes, {} parameters",
                summary.bytes_in_all(),
                summary.parameters
            ),
        ),
        ("Opset", summary.opset.to_string()),
        ("SHA-256", summary.sha256.clone()),
    ];
    out.push_str("<dl>");
    for (term, text) in pairs.into_iter().filter(|(_, text)| !text.is_empty()) {
        let _ = write!(out, "<dt>{term}</dt><dd>{}</dd>", escaped(&text));
    }
    out.push_str("</dl>");
}

fn verdict(out: &mut String, comparison: &Comparison) {
    let Some(verdict) = &comparison.verdict else {
        return;
    };
    let _ = write!(
        out,
        "<h2>Verdict: {}</h2><p><code>{}</code>: {}.</p>",
        escaped(&verdict.decision.to_string()),
        escaped(&verdict.output),
        escaped(&verdict.reason)
    );
    if !verdict.next.is_empty() {
        out.push_str("<p>To try:</p><ul>");
        for step in &verdict.next {
            let _ = write!(out, "<li>{}</li>", escaped(&step.to_string()));
        }
        out.push_str("</ul>");
    }
}

fn warnings(out: &mut String, comparison: &Comparison) {
    for warning in &comparison.warnings {
        let _ = write!(out, "<div class=\"warning\">{}", escaped(&warning.message));
        if !warning.keep_float.is_empty() {
            let _ = write!(
                out,
                "<br>Keep float: {}",
                escaped(&warning.keep_float.join(", "))
            );
        }
        out.push_str("</div>");
    }
}

fn outputs(out: &mut String, comparison: &Comparison) {
    let _ = write!(out, "<h2>Outputs, on {} samples</h2>", comparison.samples);
    head(
        out,
        &[
            "output",
            "kind",
            "SQNR dB",
            "cosine",
            "max difference",
            "mean difference",
            "top-1 agreement",
            "top-5 agreement",
            "KL divergence, nats",
            "perplexity, float",
            "perplexity, quantized",
            "accuracy, float",
            "accuracy, quantized",
            "boxes matched",
            "weights only dB",
            "activations only dB",
        ],
        2,
    );
    for output in &comparison.outputs {
        let share = |value: Option<f64>| value.map(|v| (v, format!("{:.1} %", v * 100.0)));
        out.push_str("<tr>");
        words(out, &output.name);
        words(out, &output.kind.to_string());
        let apart = &output.apart;
        for (value, shown) in [
            (apart.sqnr, format!("{:.1}", apart.sqnr)),
            (apart.cosine, format!("{:.6}", apart.cosine)),
            (apart.max, format!("{:.6}", apart.max)),
            (apart.mean, format!("{:.6}", apart.mean)),
        ] {
            quantity(out, Some((value, shown)), None);
        }
        quantity(out, share(output.top1), None);
        quantity(out, share(output.top5), None);
        let perplexity = output.tokens.and_then(|tokens| tokens.perplexity);
        for (value, digits) in [
            (output.tokens.map(|tokens| tokens.kl), 6),
            (perplexity.map(|both| both.0), 3),
            (perplexity.map(|both| both.1), 3),
        ] {
            quantity(out, value.map(|v| (v, format!("{v:.digits$}"))), None);
        }
        quantity(out, share(output.accuracy.map(|a| a.0)), None);
        quantity(out, share(output.accuracy.map(|a| a.1)), None);
        let boxes = output.boxes.filter(|boxes| boxes.confident > 0);
        let again = |b: crate::compare::BoxMatches| b.matched as f64 / b.confident as f64;
        quantity(out, share(boxes.map(again)), None);
        for sqnr in [output.weights_only, output.activations_only] {
            quantity(out, sqnr.map(|v| (v, format!("{v:.1}"))), None);
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn errors(out: &mut String, comparison: &Comparison) {
    out.push_str("<h2>Where the error comes from</h2>");
    head(
        out,
        &[
            "layer",
            "operator",
            "value",
            "harm",
            "own SQNR dB",
            "SQNR reached dB",
            "weights only dB",
            "activations only dB",
            "clipped",
            "min",
            "max",
        ],
        3,
    );
    for layer in &comparison.layers {
        let decibels = |value: Option<f64>| value.map(|v| (v, format!("{v:.1}")));
        let share = |value: f64| Some((value, format!("{:.2} %", value * 100.0)));
        out.push_str("<tr>");
        for text in [&layer.layer, &layer.operator, &layer.value] {
            words(out, text);
        }
        quantity(out, share(layer.harm), Some(layer.harm));
        quantity(out, decibels(layer.added.map(|a| a.sqnr)), None);
        quantity(out, decibels(Some(layer.accumulated.sqnr)), None);
        quantity(out, decibels(layer.weights_only), None);
        quantity(out, decibels(layer.activations_only), None);
        quantity(out, share(layer.clipped), None);
        for end in [layer.min, layer.max] {
            quantity(out, Some((end.into(), format!("{end:.4}"))), None);
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn layers(out: &mut String, name: &str, table: &LayerTable) {
    let _ = write!(out, "<h2>Layers, {}</h2><p>", escaped(name));
    for line in crate::profile::text::summary(table).lines() {
        let _ = write!(out, "{}<br>", escaped(line));
    }
    out.push_str("</p>");
    let titles = Column::ALL.map(Column::title);
    let words_first = Column::ALL.iter().take_while(|c| !c.is_number()).count();
    head(out, &titles, words_first);
    for layer in &table.layers {
        out.push_str("<tr>");
        for column in Column::ALL {
            let shown = column.shown(layer);
            if column.is_number() {
                let value = match column.cell(layer) {
                    crate::profile::columns::Cell::Number(value) => Some((value, shown)),
                    _ => None,
                };
                let bar = (column == Column::Share).then_some(layer.share);
                quantity(out, value, bar);
            } else {
                words(out, &shown);
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

/// Opens a table. The first `words_first` columns hold words, the others numbers.
fn head(out: &mut String, titles: &[&str], words_first: usize) {
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    for (place, title) in titles.iter().enumerate() {
        let class = if place < words_first {
            ""
        } else {
            " class=\"n\""
        };
        let _ = write!(
            out,
            "<th scope=\"col\"{class}><button>{}</button></th>",
            escaped(title)
        );
    }
    out.push_str("</tr></thead><tbody>");
}

fn words(out: &mut String, text: &str) {
    let text = escaped(text);
    let _ = write!(out, "<td title=\"{text}\">{text}</td>");
}

/// Writes a cell with a number. A share also gets a bar behind the number.
fn quantity(out: &mut String, value: Option<(f64, String)>, bar: Option<f64>) {
    let bar = bar.map_or(String::new(), |share| {
        format!(" style=\"--w:{:.1}%\"", share.clamp(0.0, 1.0) * 100.0)
    });
    let class = if bar.is_empty() { "n" } else { "n bar" };
    let _ = match value {
        Some((value, shown)) => write!(
            out,
            "<td class=\"{class}\"{bar} data-v=\"{value}\">{}</td>",
            escaped(&shown)
        ),
        None => write!(out, "<td class=\"n\" data-v=\"-1\"></td>"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_model_is_escaped() {
        assert_eq!(escaped("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
        let mut out = String::new();
        words(&mut out, "\"><img src=x>");
        assert!(!out.contains("<img"), "{out}");
    }
}
