//! What the pools of a command's processes did, gathered. Each process that made one appended its own;
//! the others said nothing.

use crate::args::PoolStats;
use clap::ValueEnum as _;
use std::collections::BTreeMap;

/// What the preload library is told: the form, as the option has it.
pub fn word(form: PoolStats) -> String {
    form.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// All of it, as it is printed.
pub fn gathered(told: &str, form: PoolStats) -> String {
    match form {
        PoolStats::Text if told.is_empty() => {
            "cachewise: pool: no process of the command made one: none asked for a block of 128 KiB or \
             more, or none ended by itself\n"
                .to_owned()
        }
        PoolStats::Text | PoolStats::Json => told.to_owned(),
        PoolStats::Prometheus => by_metric(told),
    }
}

/// The samples of one metric together, after its type, as the exposition format asks for. The
/// processes come as they ended.
fn by_metric(told: &str) -> String {
    let mut metrics: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for sample in told.lines() {
        let name = sample.split('{').next().unwrap_or(sample);
        metrics.entry(name).or_default().push(sample);
    }
    let metrics = metrics.into_iter().map(|(name, samples)| {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        format!("# TYPE {name} {kind}\n{}\n", samples.join("\n"))
    });
    metrics.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_metric_stand_together() {
        let told = "pool_served_total{pid=\"1\"} 5\npool_bytes{pid=\"1\"} 7\n\
                    pool_served_total{pid=\"2\"} 6\npool_bytes{pid=\"2\"} 8\n";
        let expected = "# TYPE pool_bytes gauge\npool_bytes{pid=\"1\"} 7\npool_bytes{pid=\"2\"} 8\n\
                        # TYPE pool_served_total counter\npool_served_total{pid=\"1\"} 5\n\
                        pool_served_total{pid=\"2\"} 6\n";
        assert_eq!(gathered(told, PoolStats::Prometheus), expected);
        assert_eq!(gathered("", PoolStats::Prometheus), "");
        assert_eq!(gathered("", PoolStats::Json), "");
        assert!(gathered("", PoolStats::Text).contains("no process"));
    }
}
