use super::*;
use crate::plot::fixtures::{everything, record, row, said};

fn sheet(record: &Record) -> Sheet<'_> {
    Sheet { name: "a.jsonl".into(), record, said: said(record) }
}

fn drawn(record: &Record) -> String {
    page(&[sheet(record)]).expect("a page")
}

#[test]
fn a_page_needs_nothing_else_and_runs_nothing() {
    let page = drawn(&everything());
    for bad in ["<script", "http://", "https://", "@import", "url(", "onload=", "NaN", "undefined"]
    {
        let found =
            page.find(bad).map(|at| &page[at.saturating_sub(80)..(at + 80).min(page.len())]);
        assert_eq!(found, None, "{bad}");
    }
    assert!(page.contains("default-src 'none'"));
    for part in [
        "It &lt;pays&gt; from 4 KiB on.",
        "Every row",
        "Fastest by size",
        "The command",
        "prefers-color-scheme:dark",
        "break-even",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_page_is_titled_by_a_sentence_about_what_was_found() {
    let title = |verdicts: &[&str]| {
        let record = everything();
        let mut sheet = sheet(&record);
        sheet.said.verdicts = verdicts.iter().map(|text| (*text).to_owned()).collect();
        let page = page(&[sheet]).expect("a page");
        let from = page.find("<h1>").expect("a title") + 4;
        page[from..from + page[from..].find("</h1>").expect("its end")].to_owned()
    };
    assert_eq!(title(&["pool: it pays"]), "Pool: it pays.");
    assert_eq!(title(&["zero.avx is faster."]), "zero.avx is faster.");
    let withheld = title(&["Withheld: 1 of 3 cells"]);
    assert_eq!(withheld, title(&[]));
    assert!(withheld.ends_with('.') && withheld.contains("faster"), "{withheld}");
}

#[test]
fn everything_from_the_record_is_text() {
    let mut hostile = everything();
    let evil = "</style></svg><img src=x onerror=alert(1)>\"'";
    hostile.rows[1].candidate = evil.into();
    hostile.rows[2].cell.state = evil.into();
    hostile.header.settings.insert(evil.into(), evil.into());
    hostile.header.machine.cpu.model_name = evil.into();
    hostile.header.figures[0].title = evil.into();
    hostile.notes.push(cachewise_measure::Note { text: evil.into() });
    if let Some(end) = &mut hostile.end {
        end.verdicts = vec![evil.into(), evil.into()];
    }
    let page = page(&[Sheet { name: evil.into(), ..sheet(&hostile) }]).expect("a page");
    assert!(!page.contains("<img"), "unescaped");
    assert!(!page.contains("\"'>") && !page.contains("<script"));
    assert_eq!(page.matches("</style>").count(), 1);
}

#[test]
fn a_page_of_nothing_is_none() {
    assert!(page(&[]).is_err());
}

#[test]
fn ids_and_toggles_belong_together() {
    let page = drawn(&everything());
    for key in 0..3 {
        assert!(page.contains(&format!("class=\"t{key}\"")), "{key}");
        assert!(
            page.contains(&format!(".plot:has(.t{key}:not(:checked)) .s{key}{{display:none}}"))
        );
    }
    assert!(drawn(&record(vec![row("copy", 256, "warm", "libc")])).contains("<svg"));
}

#[test]
fn commands_can_be_pasted() {
    let words = ["cachewise", "run", "a b", "it's", ""].map(str::to_owned);
    assert_eq!(shell_words(&words), "cachewise run 'a b' 'it'\\''s' ''");
}

#[test]
fn a_candidate_has_one_colour_on_the_whole_page() {
    let mut plots = plot::plots(&everything());
    plots[1].keys.reverse();
    plot::agree_on_colours(&mut plots);
    let colours = |plot: &Plot| -> std::collections::BTreeMap<String, usize> {
        plot.keys.iter().map(|key| (key.name.clone(), key.colour)).collect()
    };
    assert_eq!(colours(&plots[0]), colours(&plots[1]));
    assert_ne!(colours(&plots[0])["copy.avx"], colours(&plots[0])["copy.avx.nt"]);
}
