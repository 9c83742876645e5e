//! The report in a real browser: what is looked at there is in `browser/look.py`, which needs Selenium.

use crate::command::{self, Lacking, files_in, remove_folder, root};
use anyhow::{Context as _, Result};
use cachewise_measure::{Row, Writer};
use cachewise_report::plot::fixtures::everything;
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const NEEDS: [(&str, &str); 3] = [
    ("/usr/bin/chromium", "chromium"),
    ("/usr/bin/chromedriver", "chromium-driver"),
    ("/usr/lib/python3/dist-packages/selenium", "python3-selenium"),
];

/// The tuning in `record/` whose name, which begins with its date, is the last.
pub fn newest_tuning() -> Result<PathBuf> {
    let mut found = files_in("record".as_ref(), "", ".jsonl.gz")?;
    found.retain(|path| path.to_string_lossy().contains("-tune-"));
    found.pop().context("record/: no tuning there")
}

/// Looks at a page of the record given, at one with every kind of figure, and at that of all answers. Pictures go
/// to `target/report-in-browser`.
pub fn run(record: &Path) -> Result<()> {
    Lacking::check(NEEDS)?;
    let pictures = command::target().join("report-in-browser");
    remove_folder(&pictures)?;
    fs::create_dir_all(&pictures)?;
    let made = pictures.join("every-figure.jsonl");
    synthetic(&made)?;
    let mut look = command::command("/usr/bin/python3");
    look.arg(root().join("xtask/browser/look.py"));
    let all = root().join("record");
    let pages = [(record, "tune.html"), (&made, "every-figure.html"), (&all, "rows.html")];
    for (record, page) in pages {
        let page = pictures.join(page);
        // The program as it is in the tree.
        let mut report = command::cargo("run -q -p cachewise-cli -- report");
        command::run(report.arg(record).arg("-o").arg(&page).stdout(Stdio::null()))?;
        look.arg(page);
    }
    command::run(&mut look)?;
    println!("report in a browser: pictures in {}", pictures.display());
    Ok(())
}

/// A record with every kind of figure, its numbers made up and its names hostile.
fn synthetic(path: &Path) -> Result<()> {
    let mut made = everything();
    let candidate = "copy.<img src=x onerror=alert(1)>";
    let known = made.rows.iter().filter(|row| row.candidate == "copy.avx.nt");
    let hostile: Vec<_> =
        known.map(|row| Row { candidate: candidate.to_owned(), ..row.clone() }).collect();
    made.rows.extend(hostile);
    let mut record = Writer::create(path)?;
    record.header(&made.header)?;
    made.rows.iter().try_for_each(|row| record.row(row))?;
    record.verdict("Every kind of figure is on this page, and <b>none</b> of it was measured.");
    record.finish(false)?;
    Ok(())
}
