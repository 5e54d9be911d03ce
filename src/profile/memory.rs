//! Memory and disk use at one moment: the counts of the allocator and the figures of the system.
//! Quantities that cannot be measured are `None`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use crate::allocator::{live, peak};

/// Memory and disk use at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Live memory.
    pub live: u64,
    /// Peak of live memory.
    pub peak: u64,
    /// Memory of the process: resident memory natively, all pages of the memory in wasm.
    pub process: Option<u64>,
    /// Peak of the process's memory.
    pub process_peak: Option<u64>,
    /// Bytes read from disk since the process began.
    pub disk_read: Option<u64>,
    /// Bytes written to disk since the process began.
    pub disk_write: Option<u64>,
}

/// Wasm memory as the page shows it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Memory {
    /// Size of the wasm memory, which never shrinks.
    pub pages: usize,
    /// Live memory.
    pub live: usize,
    /// Peak of the live memory.
    pub peak: usize,
}

/// Memory limit, live bytes included, if known: the address space in wasm, the available memory of
/// the system natively.
pub fn limit() -> Option<u64> {
    if cfg!(target_family = "wasm") {
        return Some(1 << 32);
    }
    let system = std::fs::read_to_string("/proc/meminfo").ok()?;
    let available = number(&system, "MemAvailable")? * 1024;
    Some(available + live() as u64)
}

/// Number after a key in a table of Linux's `/proc`.
fn number(text: &str, key: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Usage now, as far as it costs next to nothing to read.
pub fn glance() -> Usage {
    Usage {
        live: live() as u64,
        peak: peak() as u64,
        process: wasm_bytes(),
        process_peak: wasm_bytes(),
        ..Usage::default()
    }
}

/// Size of the wasm memory; `None` natively.
fn wasm_bytes() -> Option<u64> {
    #[cfg(target_family = "wasm")]
    return Some(core::arch::wasm32::memory_size(0) as u64 * 65_536);
    #[cfg(not(target_family = "wasm"))]
    None
}

/// Size of the wasm memory at the last call of [`growth`].
static SIZE: AtomicU64 = AtomicU64::new(0);

/// Old and new size if the wasm memory grew since the last call. Only one of several threads gets
/// the answer.
pub fn growth() -> Option<(u64, u64)> {
    grown_from(&SIZE, wasm_bytes()?)
}

fn grown_from(last: &AtomicU64, now: u64) -> Option<(u64, u64)> {
    let before = last.fetch_max(now, Relaxed);
    (before != 0 && now > before).then_some((before, now))
}

/// Usage now.
pub fn usage() -> Usage {
    Usage {
        live: live() as u64,
        peak: peak() as u64,
        ..system()
    }
}

#[cfg(target_family = "wasm")]
fn system() -> Usage {
    // Wasm memory never shrinks.
    Usage {
        process: wasm_bytes(),
        process_peak: wasm_bytes(),
        ..Usage::default()
    }
}

#[cfg(target_os = "linux")]
fn system() -> Usage {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    Usage {
        process: number(&status, "VmRSS").map(|kib| kib * 1024),
        process_peak: number(&status, "VmHWM").map(|kib| kib * 1024),
        disk_read: number(&io, "read_bytes"),
        disk_write: number(&io, "write_bytes"),
        ..Usage::default()
    }
}

#[cfg(not(any(target_family = "wasm", target_os = "linux")))]
fn system() -> Usage {
    Usage::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_growth_is_reported_once_and_the_first_call_is_none() {
        let size = AtomicU64::new(0);
        let told: Vec<_> = [5, 5, 7, 7, 9].map(|now| grown_from(&size, now)).into();
        assert_eq!(told, [None, None, Some((5, 7)), None, Some((7, 9))]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn linux_reports_resident_memory_and_its_peak() {
        let usage = usage();
        assert!(usage.process.unwrap() > 0 && usage.process_peak >= usage.process);
    }
}
