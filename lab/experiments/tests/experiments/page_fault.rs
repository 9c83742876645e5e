//! `page-fault` for real, as short as it can be: its rows, tables' figures and refusals. No test
//! looks at a timing.

use super::*;
use cachewise_experiments::names;

#[test]
fn every_way_to_get_a_page_is_measured_and_billed() {
    let options = Options { rounds: Some(2), ..quick("", &[1 << 20]) };
    let RunOutcome { finish, rows, verdicts, .. } =
        run_with("page-fault", &options, &mut patient(usize::MAX));
    finish.expect("it runs");
    let arms = "kernel 4k; kernel THP; MAP_POPULATE; MADV_POPULATE_WRITE; ready 4k; \
        ready 4k, fault-around; calloc; pool hot-zero; pool prezeroed; pool prezeroed 4k; \
        pool draining; zalloc, scrubbing; zalloc, scrubber off";
    for name in arms.split("; ") {
        assert!(rows.iter().any(|row| row.candidate == name), "{name}");
    }
    let of_cpu = |row: &&Row| row.cell.state == names::CPU_OF_PAGE;
    assert!(rows.iter().filter(of_cpu).any(|row| row.candidate == names::PREZEROED));
    let figure = |row: &Row, name: &str| row.extra[name];
    for row in rows.iter().filter(|row| row.cell.state == "fault") {
        assert_eq!(row.reference, "kernel 4k");
        assert_eq!(row.operation_ns.len(), 2);
        assert!(figure(row, names::PER_CPU).is_finite(), "{}", row.candidate);
        let reps = row.cell.axes[names::REPS];
        assert_eq!(figure(row, names::GIGABYTES), reps * f64::from(1 << 20) / 1e9);
        match row.candidate.as_str() {
            // Each page is faulted in by itself, once per repetition.
            "kernel 4k" => assert!(figure(row, names::FAULTS) >= 0.99),
            // As many, and they zero nothing: that was done, and is billed.
            "ready 4k" => {
                assert!(figure(row, names::FAULTS) >= 0.99);
                assert!(figure(row, names::SCRUB) > 0.0);
            }
            "ready 4k, fault-around" => assert!(figure(row, names::FAULTS) < 0.5),
            "pool prezeroed" | "pool hot-zero" => {
                assert!(figure(row, names::FAULTS) < 0.2);
                assert!(figure(row, names::SCRUB) > 0.0 || row.candidate.ends_with("hot-zero"));
            }
            _ => {}
        }
    }
    for (state, name) in
        [("fresh", "1 thread"), ("recycled", "1 thread"), ("hot pages", names::HOT_ZEROED)]
    {
        let is_it = |row: &&Row| row.candidate == name && row.cell.state == state;
        assert!(rows.iter().any(|row| is_it(&row)), "{state}, {name}");
    }
    // Two rounds have figures and no ratios: only rows without a word are printed.
    assert!(verdicts.iter().all(|text| !text.contains(" yes")), "{verdicts:?}");
    for (options, told) in [
        (quick("zero.*", &[]), "--kernels: not for"),
        (quick("", &[5000]), "whole pages"),
        (quick("", &[4096, 8192]), "a second one"),
    ] {
        let error = refused("page-fault", &options);
        assert!(error.contains(told), "{error}");
    }
}
