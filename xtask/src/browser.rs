//! The report in a real browser: headless Chromium, every control used, nothing on the console,
//! nothing asked of the network, no sideways scrolling on a phone, and pictures for people to look at.

use crate::command::{self, Lacking};
use crate::webdriver::Browser;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use cachewise_measure::{Row, Writer};
use cachewise_report::plot::fixtures::everything;
use fs_err as fs;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const TAB: char = '\u{e004}';
const SPACE: char = ' ';
const ENTER: char = '\u{e007}';

/// The tuning in `record/` whose name, which begins with its date, is the last.
pub fn newest_tuning() -> Result<PathBuf> {
    let mut found = command::files_in("record".as_ref(), "", ".jsonl.gz")?;
    found.retain(|path| path.to_string_lossy().contains("-tune-"));
    found.pop().context("record/: no tuning there")
}

/// Looks at a page of the record given and at one with every kind of figure. Pictures go to
/// `target/report-in-browser`.
pub fn run(record: &Path) -> Result<()> {
    let found = |name: &str| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
    };
    let (chromium, driver) = (found("chromium"), found("chromedriver"));
    let (Some(chromium), Some(driver)) = (chromium, driver) else {
        return Err(Lacking::packages(&["chromium", "chromium-driver"]).into());
    };
    let pictures = command::target().join("report-in-browser");
    command::remove_folder(&pictures)?;
    fs::create_dir_all(&pictures)?;
    let made = pictures.join("every-figure.jsonl");
    synthetic(&made)?;
    let (tuned, every) = (pictures.join("tune.html"), pictures.join("every-figure.html"));
    // The program as it is in the tree.
    for (record, page) in [(record, &tuned), (&made, &every)] {
        let mut report = command::cargo("run -q -p cachewise-cli -- report");
        report.arg(record).arg("-o").arg(page).stdout(Stdio::null());
        command::run(&mut report)?;
    }

    let browser = Browser::start(&driver, &chromium, &pictures)?;
    for page in [&tuned, &every] {
        let used = look(&browser, page).and_then(|()| use_controls(&browser));
        used.and_then(|()| use_keyboard(&browser)).with_context(|| page.display().to_string())?;
        // It prints, light on paper whatever the screen.
        let printed = browser.devtools("Page.printToPDF", json!({"printBackground": true}))?;
        decode(&printed, &page.with_extension("pdf"))?;
    }
    drop(browser);
    fs::remove_dir_all(pictures.join("profile")).ok();
    println!("report in a browser: pictures in {}", pictures.display());
    Ok(())
}

/// Two widths, both colour schemes: a picture each, and what must hold in all of them.
fn look(browser: &Browser, page: &Path) -> Result<()> {
    let open = |(width, mobile): (u32, bool), scheme: &str| {
        let metrics =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile});
        browser.devtools("Emulation.setDeviceMetricsOverride", metrics)?;
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.devtools("Emulation.setEmulatedMedia", json!({"features": features}))?;
        browser.open(&format!("file://{}", page.display()))
    };
    for (width, mobile) in [(1280, false), (360, true)] {
        for scheme in ["light", "dark"] {
            open((width, mobile), scheme)?;
            let name =
                format!("{}-{width}-{scheme}", page.file_stem().unwrap_or_default().display());
            let folded = silent(browser).and_then(|()| no_sideways_scrolling(browser));
            folded.context(name.clone())?;
            let ground = if is_dark(browser)? { "dark" } else { "light" };
            ensure!(ground == scheme, "{name}: the ground is {ground}");
            picture(browser, &page.with_file_name(format!("{name}.png")))?;
            // With everything unfolded as well, which is more than anybody would do at once.
            let opened = "const all = [...document.querySelectorAll('details')]; \
                 all.forEach(d => d.open = true); return all.length";
            ensure!(browser.evaluate(opened)?.as_u64() > Some(3), "{name}: too few details");
            no_sideways_scrolling(browser).with_context(|| format!("{name}, unfolded"))?;
        }
    }
    open((1280, false), "light")
}

/// Nothing on the console, nothing loaded but the page.
fn silent(browser: &Browser) -> Result<()> {
    let said = browser.console()?;
    ensure!(said.is_empty(), "the console says {said:?}");
    let loaded = "return performance.getEntriesByType('resource').map(e => e.name)";
    let loaded = browser.evaluate(loaded)?;
    ensure!(
        loaded.as_array().is_some_and(|all| all.iter().all(|name| name == "data:,")),
        "the page loads {loaded}"
    );
    Ok(())
}

fn is_dark(browser: &Browser) -> Result<bool> {
    let red = "return getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0] < 128";
    browser.evaluate(red)?.as_bool().context("a colour")
}

fn no_sideways_scrolling(browser: &Browser) -> Result<()> {
    let script = "const w = document.documentElement.clientWidth; \
         const wide = [...document.querySelectorAll('body *')].filter(e => { \
           if (e.closest('svg, .skip, .wide table')) return false; \
           const r = e.getBoundingClientRect(); \
           return r.width > 1 && r.right > w + 1 }); \
         return [document.documentElement.scrollWidth - w, \
           wide.slice(0, 5).map(e => e.outerHTML.slice(0, 120))]";
    let found = browser.evaluate(script)?;
    ensure!(
        found[0].as_i64() <= Some(0) && found[1].as_array().is_some_and(Vec::is_empty),
        "wider than the window: {found}"
    );
    Ok(())
}

fn picture(browser: &Browser, path: &Path) -> Result<()> {
    let size = "const e = document.documentElement; \
         return { x: 0, y: 0, scale: 1, width: e.clientWidth, height: Math.min(9000, e.scrollHeight) }";
    let clip = browser.evaluate(size)?;
    let wanted = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    decode(&browser.devtools("Page.captureScreenshot", wanted)?, path)
}

fn decode(answer: &Value, path: &Path) -> Result<()> {
    let data = answer["data"].as_str().context("no picture")?;
    fs::write(path, base64::engine::general_purpose::STANDARD.decode(data)?)?;
    Ok(())
}

/// The theme, every toggle of every legend, the folded parts.
fn use_controls(browser: &Browser) -> Result<()> {
    for (theme, dark) in [("dark", true), ("light", false), ("dark", true), ("auto", false)] {
        browser.click(&format!("#theme-{theme}"))?;
        ensure!(is_dark(browser)? == dark, "theme {theme} does nothing");
    }
    let folded = "document.querySelectorAll('.legend details').forEach(d => d.open = true); \
         document.querySelectorAll('.legend input').forEach((e, i) => e.dataset.at = i); \
         return document.querySelectorAll('.legend input').length";
    let toggles = browser.evaluate(folded)?.as_u64().unwrap_or(0);
    ensure!(toggles >= 2, "{toggles} toggles");
    // How many marks of its series are seen, and whether it is checked.
    let state = "const e = document.querySelector(`.legend input[data-at='${arguments[0]}']`); \
         const marks = [...e.closest('.plot').querySelectorAll('svg.chart .s' + e.className.slice(1))]; \
         return [e.checked, marks.length, \
           marks.filter(m => getComputedStyle(m).display !== 'none').length]";
    for toggle in 0..toggles {
        for _ in 0..2 {
            let before = browser.evaluate_with(state, json!([toggle]))?;
            browser.click(&format!(".legend input[data-at='{toggle}']"))?;
            let after = browser.evaluate_with(state, json!([toggle]))?;
            ensure!(before[0] != after[0], "toggle {toggle} cannot be clicked");
            let seen = if after[0] == json!(true) { &after[1] } else { &json!(0) };
            ensure!(
                after[2] == *seen && after[1] != json!(0),
                "toggle {toggle}: {before} then {after}"
            );
        }
    }
    for fold in ["details.numbers", "details.group"] {
        browser.click(&format!("{fold} > summary"))?;
        let open = format!("return document.querySelector('{fold}').open");
        ensure!(browser.evaluate(&open)? == json!(true), "{fold} stays folded");
    }
    silent(browser)
}

/// From control to control with Tab; each shows that it has the focus; Space and Enter work.
fn use_keyboard(browser: &Browser) -> Result<()> {
    browser.evaluate("location.reload()")?;
    let focused = "const e = document.activeElement; const s = getComputedStyle(e); \
         return [e.tagName, e.className.baseVal ?? e.className, \
           s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2, \
           e.getAttribute('aria-label') ?? e.textContent ?? '']";
    let mut seen = BTreeSet::new();
    let (mut toggled, mut opened) = (false, false);
    for step in 0..60 {
        browser.key(TAB)?;
        let at = browser.evaluate(focused)?;
        let (tag, class) = (at[0].as_str().unwrap_or_default(), at[1].as_str().unwrap_or_default());
        ensure!(step > 0 || class == "skip", "the first stop is {at}");
        if tag == "BODY" {
            break;
        }
        ensure!(at[2] == json!(true), "the focus does not show on {at}");
        let named = at[3].as_str().is_some_and(|name| name.len() > 5);
        ensure!(named || tag != "g", "a mark without a name: {at}");
        seen.insert(tag.to_ascii_lowercase());
        let (state, key, done) = match tag {
            "INPUT" if class.starts_with('t') => ("checked", SPACE, &mut toggled),
            "SUMMARY" => ("parentElement.open", ENTER, &mut opened),
            _ => continue,
        };
        if !std::mem::replace(done, true) {
            let state = format!("return document.activeElement.{state}");
            let before = browser.evaluate(&state)?;
            browser.key(key)?;
            ensure!(browser.evaluate(&state)? != before, "{key:?} changes nothing on {at}");
            browser.key(key)?;
        }
    }
    for tag in ["a", "input", "summary", "pre", "g"] {
        ensure!(seen.contains(tag), "Tab never stops at {tag}: {seen:?}");
    }
    ensure!(toggled && opened, "no toggle or no summary was reached: {seen:?}");
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
