//! Every record that was ever kept is still read and drawn, whatever schema it was written in.

use cachewise_measure::{ProofVerdict, record};
use std::io::Read as _;
use std::path::Path;

#[test]
fn every_record_is_read_and_drawn() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let (mut drawn, mut withheld) = (0, 0);
    for entry in std::fs::read_dir(&directory).expect("the records").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".jsonl.gz") {
            continue;
        }
        let stored = std::fs::read(entry.path()).expect("a record");
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(stored.as_slice())
            .read_to_string(&mut text)
            .expect("a whole gzip file");
        let record = record::read_text(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        // Today's rules say what it amounts to, in today's words.
        let said = cachewise_report::verdicts(&record).join("\n");
        let failed = record.rows.iter().flat_map(|row| &row.proofs);
        let failed = failed.filter(|proof| proof.verdict == ProofVerdict::Failed).count();
        let is_run = record.header.settings.get("experiment").and_then(|name| name.as_str());
        let judged = is_run.is_some_and(cachewise_report::sentences::has);
        for old in ["around the cache", "ordinary stores", "eed 00", "pays not up"] {
            assert!(!judged || !said.contains(old), "{name}: {old}: {said}");
        }
        assert!(!judged || said.contains("Withheld: ") == (failed > 0), "{name}: {failed}: {said}");
        withheld += usize::from(judged && failed > 0);
        let experiment = record.rows.first().map_or("", |row| row.experiment.as_str());
        let tables = cachewise_report::experiment_tables(experiment, &record.rows);
        assert!(!tables.is_empty() && !record.rows.is_empty(), "{name}");
        // A quick run lacks states that some of the figures are of.
        let figures = cachewise_report::plot::figures(&record);
        let shown =
            figures.iter().filter(|figure| cachewise_report::plot::plot(&record, figure).is_some());
        assert!(2 * shown.count() > figures.len(), "{name}");
        for ratio in record.rows.iter().flat_map(|row| [row.ratio, row.total_ratio]).flatten() {
            assert!(ratio.low <= ratio.high && ratio.median > 0.0, "{name}: {ratio:?}");
        }
        drawn += 1;
    }
    assert!(drawn >= 18, "{drawn} records");
    assert!(withheld > 0, "records whose proofs failed are among them");
}
