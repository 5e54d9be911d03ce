//! `octet merge`: merges the files of shards, of a calibration, a comparison or a search, to that of
//! one run.

use std::path::{Path, PathBuf};

use clap::Args;
use octet::shards::{Payload, StatsFile, check_together};
use rayon::prelude::*;

use super::stats_files::{read, read_header, refused};
use super::{Failure, files, messages, targets, threads};

#[derive(Args)]
pub struct MergeOptions {
    /// Files of `octet observe`, of --save-stats, or of `octet merge`, of one model, settings and pass
    #[arg(value_name = "SHARD.stats", required = true)]
    shards: Vec<PathBuf>,
    /// File of the merged statistics
    #[arg(long, value_name = "OUT.stats")]
    out: PathBuf,
    /// Fail unless all shards are here
    #[arg(long)]
    complete: bool,
    /// Print a description of the result as JSON
    #[arg(long)]
    json: bool,
    /// Number of files that are read at the same time [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Runs the command.
pub fn run(options: &MergeOptions) -> Result<(), Failure> {
    targets::check(&[(&options.out, "--out")], Path::new(""), &[])?;
    let threads = threads::start(options.threads)?;
    // The headers alone decide what belongs together, so a wrong file is found at once.
    let named = |path: &PathBuf| Ok((path.display().to_string(), read_header(path)?));
    let headers = options.shards.iter().map(named);
    let headers = headers.collect::<Result<Vec<_>, Failure>>()?;
    let header = check_together(&headers).map_err(|error| Failure::input(error.to_string()))?;
    if options.complete {
        let complete = header.require_complete();
        complete.map_err(|error| Failure::input(error.to_string()))?;
    }
    drop(headers);
    let payload = merged(&options.shards, threads)?.bytes();
    let payload = payload.map_err(|error| Failure::input(error.to_string()))?;
    let file = StatsFile { header, payload };
    let bytes = file
        .to_bytes()
        .map_err(|error| Failure::unfinished(error.to_string()))?;
    files::write(&options.out, &[&bytes], "--out")?;
    let header = &file.header;
    if options.json {
        let done = serde_json::json!({ "bytes": bytes.len(), "header": header });
        return files::print(&(serde_json::to_string_pretty(&done)? + "\n"));
    }
    files::print(&format!(
        "{}: {} bytes from {} files, pass {} ({}), {} samples, {} skipped\n",
        options.out.display(),
        bytes.len(),
        options.shards.len(),
        header.pass,
        header.content,
        header.samples,
        header.skipped.len()
    ))?;
    for sources in header
        .sources
        .values()
        .filter_map(|shards| shards.missing())
    {
        messages::note(&format!("{sources} are not here yet"));
    }
    if header.processors.len() > 1 {
        let all: Vec<&str> = header.processors.iter().map(String::as_str).collect();
        messages::note(&format!(
            "the shards ran on different instruction sets ({}), so floats may differ in their last bits \
             from a run on one machine",
            all.join("; ")
        ));
    }
    Ok(())
}

/// Merges the files in as many parts as there are threads. One file a thread is in memory.
fn merged(paths: &[PathBuf], threads: usize) -> Result<Payload, Failure> {
    let name = |path: &Path| path.display().to_string();
    let first = name(&paths[0]);
    let part = |paths: &[PathBuf]| -> Result<Option<Payload>, Failure> {
        let mut all: Option<Payload> = None;
        for path in paths {
            let file = read(path)?;
            let more = Payload::of(&file).map_err(|error| refused(path, &error))?;
            match &mut all {
                None => all = Some(more),
                Some(all) => all
                    .merge(&first, &name(path), &more)
                    .map_err(|error| Failure::input(error.to_string()))?,
            }
        }
        Ok(all)
    };
    let parts: Vec<_> = paths
        .par_chunks(paths.len().div_ceil(threads))
        .map(part)
        .collect();
    let mut all: Option<Payload> = None;
    for more in parts {
        match (&mut all, more?) {
            (Some(all), Some(more)) => all
                .merge(&first, "another file", &more)
                .map_err(|error| Failure::input(error.to_string()))?,
            (all, more) => *all = more,
        }
    }
    all.ok_or_else(|| Failure::usage("no files were given: name those of octet observe"))
}
