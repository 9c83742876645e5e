use super::*;
use crate::plot::fixtures::everything;
use crate::plot::plots;
use cachewise_measure::{PairedRatio, Record};
use proptest::prelude::*;

/// Every panel, as on a page and as a file.
fn drawn(record: &Record) -> Vec<String> {
    let all = |plot: Plot| -> Vec<String> {
        let both = |only: &Panel| [panel(&plot, only), document(&plot, only)];
        plot.panels.iter().flat_map(both).collect()
    };
    plots(record).into_iter().flat_map(all).collect()
}

/// Well-formed XML, in which every number in an attribute is one.
#[track_caller]
fn well_formed(text: &str) {
    for bad in ["NaN", "inf", "\"null\""] {
        assert!(!text.contains(bad), "{bad} in {text}");
    }
    if let Err(error) = roxmltree::Document::parse(text) {
        panic!("{error}: {text}");
    }
}

#[test]
fn every_kind_is_drawn() {
    let all = drawn(&everything());
    assert_eq!(all.len(), 2 * (1 + 5 + 1));
    all.iter().for_each(|text| well_formed(text));
    insta::assert_snapshot!("curve", all[0]);
    insta::assert_snapshot!("bars", all[2]);
    insta::assert_snapshot!("heat-map", all[12]);
}

proptest! {
    #[test]
    fn no_value_breaks_a_picture(
        times in proptest::collection::vec(prop_oneof![
            -1e3_f64..1e3, Just(f64::NAN), Just(f64::INFINITY), Just(0.0), 1e-300_f64..1e300,
        ], 0..6),
        ratio in prop_oneof![Just(f64::NAN), Just(0.0), -1.0_f64..10.0, Just(f64::INFINITY)],
        size in 0_u64..u64::MAX,
    ) {
        let mut record = everything();
        for (index, row) in record.rows.iter_mut().enumerate() {
            row.operation_ns.clone_from(&times);
            if index % 2 == 0 {
                row.reader_ns.clone_from(&times);
            }
            let (median, low, high) = (ratio, ratio, ratio);
            row.total_ratio = Some(PairedRatio { median, low, high, rounds: 3 });
            if index % 3 == 0 {
                row.cell.size = size;
            }
            row.cell.axes.values_mut().for_each(|value| *value *= ratio);
        }
        drawn(&record).iter().for_each(|text| well_formed(text));
    }
}

#[test]
fn numbers_are_short_and_finite() {
    let all = [1.0, -0.04, 12.349, f64::NAN, f64::INFINITY].map(number);
    assert_eq!(all, ["1", "0", "12.3", "0", "0"]);
}

/// Librsvg, mail programs and wikis draw files without knowing custom properties.
#[test]
fn a_file_has_colours_without_custom_properties() {
    let style = super::with_fallbacks(super::STYLE);
    let (mut before, mut found) = ("", 0);
    for part in style.split_inclusive([';', '{', '}']) {
        if let Some((property, value)) = part.split_once(": ")
            && value.starts_with("var(--")
            && !value.starts_with("var(--dash")
        {
            let property = if property.trim() == "--c" { "color" } else { property.trim() };
            let literal =
                before.trim().strip_prefix(property).map(|rest| rest.trim_start_matches(": "));
            let literal = literal.unwrap_or_else(|| panic!("{part}: behind {before}"));
            assert!(literal.starts_with('#') || literal == "currentColor;", "{before}");
            found += 1;
        }
        before = part;
    }
    assert!(found > 30, "{found}");
}
