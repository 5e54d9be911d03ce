//! Traces of runs for other tools: Chrome trace events (Perfetto, `chrome://tracing`), speedscope
//! and Model Explorer.
//!
//! Two slices on one thread of a Chrome trace must be disjoint or nested. Layers follow one another
//! inside their run. Times are rounded to nanoseconds, so that rounding cannot make slices overlap.

use serde_json::{Value, json};

use super::layers::LayerTable;
use super::record::Record;
use super::recording::RunRecord;
use super::run_step::{Moment, RunScope, RunStep};

/// A profile with its name, such as `float` or `int8`.
pub struct Traced<'a> {
    /// Name of the profile.
    pub name: &'a str,
    /// Layer table.
    pub table: &'a LayerTable,
    /// Measured runs.
    pub runs: &'a [RunRecord],
    /// Row in the table of each step.
    pub rows: &'a [usize],
}

/// Milliseconds as microseconds, rounded to nanoseconds.
fn us(ms: f64) -> f64 {
    (ms * 1e6).round() / 1e3
}

/// Chrome trace events. Stages are on one thread, and the runs of each profile with their layers on
/// one of their own. Live memory is a counter.
pub fn chrome(records: &[Record], profiles: &[Traced<'_>]) -> String {
    let mut events = vec![name_of("process_name", 0, "Octet")];
    events.push(name_of("thread_name", 0, "stages"));
    events.extend(stages(records));
    // A profile's runs start where its stage began, and never before those of the previous profile
    // end.
    let profiling = Moment::begins(RunStep::Profiling);
    let starts = records.iter().filter(|r| r.moment == profiling);
    let starts: Vec<f64> = starts.map(|r| r.seconds * 1e3).collect();
    let mut free = 0.0f64;
    for (index, profile) in profiles.iter().enumerate() {
        let thread = index + 1;
        events.push(name_of("thread_name", thread, profile.name));
        let start = starts.get(index).copied().unwrap_or(free).max(free);
        for (number, run) in profile.runs.iter().enumerate() {
            let begin = start + run.begin_ms;
            let mut slice = slice(&format!("run {}", number + 1), thread, begin, run.ms);
            slice["args"] = json!({ "ms": run.ms });
            events.push(slice);
            for record in &run.steps {
                events.push(layer(profile, thread, start, record));
                events.push(json!({
                    "name": format!("live memory, {}", profile.name), "ph": "C", "pid": 1, "tid": thread,
                    "ts": us(start + record.begin_ms + record.ms),
                    "args": { "MB": record.live as f64 / 1e6 },
                }));
            }
            free = begin + run.ms;
        }
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
}

fn name_of(kind: &str, thread: usize, name: &str) -> Value {
    json!({ "name": kind, "ph": "M", "pid": 1, "tid": thread, "args": { "name": name } })
}

fn slice(name: &str, thread: usize, begin_ms: f64, ms: f64) -> Value {
    // Round the end, not the duration, so that equal ends stay equal.
    let (begin, end) = (us(begin_ms), us(begin_ms + ms));
    json!({
        "name": name, "ph": "X", "pid": 1, "tid": thread, "ts": begin,
        "dur": ((end - begin) * 1e3).round() / 1e3,
    })
}

fn layer(
    profile: &Traced<'_>,
    thread: usize,
    start: f64,
    record: &super::recording::StepRecord,
) -> Value {
    let row = profile
        .rows
        .get(record.step)
        .and_then(|&row| profile.table.layers.get(row));
    let name = row.map_or("?", |row| row.name.as_str());
    let mut event = slice(name, thread, start + record.begin_ms, record.ms);
    event["cat"] = json!(row.map_or("", |row| row.operator.as_str()));
    event["args"] = json!({
        "kernel": row.map_or("", |row| row.kernel.as_str()),
        "nodes": row.map(|row| row.nodes.as_slice()),
        "peak bytes": record.peak,
        "live bytes": record.live,
    });
    event
}

/// Stages as slices, other checkpoints as instants. Live memory is a counter.
fn stages(records: &[Record]) -> Vec<Value> {
    let mut events = Vec::new();
    let mut open: Vec<(&RunScope, f64)> = Vec::new();
    let last = records.last().map_or(0.0, |r| r.seconds * 1e3);
    for record in records {
        let now = record.seconds * 1e3;
        events.push(json!({
            "name": "heap", "ph": "C", "pid": 1, "tid": 0, "ts": us(now),
            "args": { "live MB": record.usage.live as f64 / 1e6 },
        }));
        match &record.moment {
            Moment::Begins(scope) => open.push((scope, now)),
            Moment::Ends(scope) if open.last().is_some_and(|(begun, _)| *begun == scope) => {
                if let Some((scope, began)) = open.pop() {
                    events.push(slice(&scope.to_string(), 0, began, now - began));
                }
            }
            moment => events.push(json!({
                "name": moment.to_string(), "ph": "i", "s": "t", "pid": 1, "tid": 0, "ts": us(now),
            })),
        }
    }
    // Stages that an interrupted run left open.
    for (scope, began) in open {
        events.push(slice(&scope.to_string(), 0, began, last - began));
    }
    events
}

/// A speedscope file with a profile for each model: the layers of the run of median time, as they
/// ran.
pub fn speedscope(profiles: &[Traced<'_>]) -> String {
    let mut frames: Vec<String> = Vec::new();
    let profiles: Vec<Value> = profiles
        .iter()
        .filter_map(|profile| {
            let run = median_run(profile.runs)?;
            let mut events = Vec::new();
            let mut at = 0.0;
            for record in &run.steps {
                let row = profile.table.layers.get(*profile.rows.get(record.step)?)?;
                let name = format!("{} ({})", row.name, row.operator);
                let frame = frames.iter().position(|f| *f == name).unwrap_or_else(|| {
                    frames.push(name);
                    frames.len() - 1
                });
                let begin = us(record.begin_ms - run.begin_ms).max(at);
                at = us(record.begin_ms + record.ms - run.begin_ms).max(begin);
                events.push(json!({ "type": "O", "frame": frame, "at": begin }));
                events.push(json!({ "type": "C", "frame": frame, "at": at }));
            }
            Some(json!({
                "type": "evented", "name": profile.name, "unit": "microseconds",
                "startValue": 0, "endValue": us(run.ms).max(at), "events": events,
            }))
        })
        .collect();
    let frames: Vec<Value> = frames
        .into_iter()
        .map(|name| json!({ "name": name }))
        .collect();
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("octet ", env!("CARGO_PKG_VERSION")),
        "shared": { "frames": frames },
        "profiles": profiles,
    })
    .to_string()
}

/// The run of median duration.
fn median_run(runs: &[RunRecord]) -> Option<&RunRecord> {
    let mut sorted: Vec<&RunRecord> = runs.iter().collect();
    sorted.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    sorted.get(sorted.len() / 2).copied()
}

/// Node data for Model Explorer: own milliseconds by node name, for colouring the graph. Nodes
/// fused into a layer have no time of their own and are left out.
pub fn model_explorer(table: &LayerTable) -> String {
    let layers = table.layers.iter();
    let results: serde_json::Map<String, Value> = layers
        .map(|layer| (layer.name.clone(), json!({ "value": layer.ms.median })))
        .collect();
    json!({
        "results": results,
        "gradient": [{ "stop": 0, "bgColor": "#ffffff" }, { "stop": 1, "bgColor": "#d9480f" }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Layer;
    use crate::profile::memory::Usage;
    use crate::profile::recording::StepRecord;

    fn table() -> LayerTable {
        let layer = |name: &str| Layer {
            name: name.into(),
            operator: "Conv".into(),
            ..Layer::default()
        };
        LayerTable {
            layers: vec![layer("a"), layer("b")],
            ..LayerTable::default()
        }
    }

    fn runs() -> Vec<RunRecord> {
        let record = |step, begin_ms, ms| StepRecord {
            step,
            begin_ms,
            ms,
            peak: 9,
            live: 5,
        };
        // Thirds need rounding.
        let third = 1.0 / 3.0;
        (0..3)
            .map(|i| {
                let begin_ms = f64::from(i) * 4.0 * third;
                let records = (0..3)
                    .map(|k| record(k, begin_ms + k as f64 * third, third))
                    .collect();
                RunRecord {
                    begin_ms,
                    ms: 3.0 * third,
                    threads: 1,
                    steps: records,
                }
            })
            .collect()
    }

    fn record(moment: Moment, seconds: f64) -> Record {
        Record {
            moment,
            timestamp: 0.0,
            seconds,
            usage: Usage::default(),
        }
    }

    /// Perfetto's rule for the slices of a thread.
    #[test]
    fn slices_of_a_thread_are_disjoint_or_nested() {
        let records = [
            record(Moment::Start, 0.0),
            record(Moment::begins(RunStep::Preparation), 0.001),
            record(Moment::ends(RunStep::Preparation), 0.002),
            record(Moment::Note("half way".into()), 0.0025),
            record(Moment::begins(RunStep::Profiling), 0.003),
        ];
        let (table, runs) = (table(), runs());
        let profile = |name| Traced {
            name,
            table: &table,
            runs: &runs,
            rows: &[0, 0, 1],
        };
        let text = chrome(&records, &[profile("float"), profile("int8")]);
        let trace: Value = serde_json::from_str(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let mut named = Vec::new();
        for thread in 0..3 {
            let of = events.iter().filter(|e| e["tid"] == thread);
            named.extend(
                of.clone()
                    .filter(|e| e["ph"] == "M" && e["name"] == "thread_name"),
            );
            let slices: Vec<(i64, i64)> = of
                .filter(|e| e["ph"] == "X")
                .map(|e| {
                    let ns = |key: &str| (e[key].as_f64().unwrap() * 1e3).round() as i64;
                    (ns("ts"), ns("ts") + ns("dur"))
                })
                .collect();
            assert_eq!(slices.len(), if thread == 0 { 2 } else { 12 });
            for (i, a) in slices.iter().enumerate() {
                for b in &slices[..i] {
                    let apart = a.1 <= b.0 || b.1 <= a.0;
                    let inside = (a.0 >= b.0 && a.1 <= b.1) || (b.0 >= a.0 && b.1 <= a.1);
                    assert!(apart || inside, "{a:?} {b:?}");
                }
            }
        }
        assert_eq!(named.len(), 3);
        assert!(
            events
                .iter()
                .any(|e| e["ph"] == "C" && e["args"]["MB"].is_number())
        );
    }

    #[test]
    fn speedscope_opens_and_closes_frames_in_order() {
        let (table, runs) = (table(), runs());
        let profile = Traced {
            name: "float",
            table: &table,
            runs: &runs,
            rows: &[0, 0, 1],
        };
        let file: Value = serde_json::from_str(&speedscope(&[profile])).unwrap();
        let profile = &file["profiles"][0];
        let frames = file["shared"]["frames"].as_array().unwrap();
        let mut at = 0.0;
        let mut open = Vec::new();
        for event in profile["events"].as_array().unwrap() {
            let (frame, now) = (
                event["frame"].as_u64().unwrap(),
                event["at"].as_f64().unwrap(),
            );
            assert!(now >= at && (frame as usize) < frames.len());
            at = now;
            match event["type"].as_str().unwrap() {
                "O" => open.push(frame),
                _ => assert_eq!(open.pop(), Some(frame)),
            }
        }
        assert!(open.is_empty() && profile["endValue"].as_f64().unwrap() >= at);
    }
}
