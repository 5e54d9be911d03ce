//! Documents that people or programs edit: settings, journals, statistics of other machines.

use octet_quantize::Settings;
use octet_stats::{IntegerRange, METHODS, Method, PassStatistics};
use octet_stream::ConversionJournal;

/// Reads settings, and reads again what is written.
pub fn settings(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice(bytes) else {
        return;
    };
    let Ok(settings) = Settings::from_value(value) else {
        return;
    };
    let written = serde_json::to_value(&settings).unwrap();
    let again = Settings::from_value(written).unwrap();
    assert_eq!(settings, again);
    let _ = settings.needs_samples();
}

/// Reads a journal, and reads again what is written.
pub fn journal(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(journal) = ConversionJournal::from_json(text) {
        let again = ConversionJournal::from_json(&journal.to_json()).unwrap();
        assert_eq!(journal, again);
    }
}

/// Reads statistics, merges them with themselves and asks every method for a range.
pub fn statistics(bytes: &[u8]) {
    let Ok(mut all) = PassStatistics::from_bytes(bytes) else {
        return;
    };
    let written = all.bytes();
    let other = PassStatistics::from_bytes(&written).unwrap();
    assert_eq!(other.bytes(), written, "equal statistics have equal bytes");
    let _ = all.merge(&other);
    let PassStatistics::Tensors(tensors) = &all else {
        return;
    };
    let methods = METHODS.iter().filter(|method| !method.choices.is_empty());
    let methods: Vec<Method> = methods.map(|method| method.name.parse().unwrap()).collect();
    for (statistics, method) in tensors
        .values()
        .flat_map(|one| methods.iter().map(move |m| (one, m)))
    {
        if let Ok(range) = method.range(statistics, &IntegerRange::default()) {
            assert!(range.min <= range.max, "{method:?}: {range:?}");
        }
    }
}
