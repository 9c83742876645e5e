//! `cachewise time-calls`: single comparisons in this process, as ordered by a JSON object on stdin;
//! the outcome as one on stdout. `run compare-latency` starts three, since layout differs between
//! processes and matters more than sampling error.

use crate::{output, status};
use anyhow::Context;
use cachewise_lab::LabError;
use cachewise_lab::experiments::compare_latency::launch::{self, Order, Outcome};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Carries out the order on stdin.
pub fn run() -> anyhow::Result<u8> {
    let order: Order = serde_json::from_reader(std::io::stdin().lock())
        .context("stdin: accepted an order as `run compare-latency` writes it")?;
    // Whoever ordered this ends it by a signal, which needs no asking.
    let outcome = launch::run(&order, &|| false)?.context("stopped")?;
    output::print(&format!("{}\n", serde_json::to_string(&outcome)?))?;
    Ok(status::OK)
}

/// Starts this program once more and hands it the order.
pub fn launch(order: &Order, stop: &dyn Fn() -> bool) -> Result<Option<Outcome>, LabError> {
    let failed = |what: String| LabError::Child { what };
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut child = Command::new(program)
        .arg("time-calls")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("time-calls does not start: {error}")))?;
    let text = serde_json::to_vec(order).map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that has died already says why on its stderr.
        let _ = stdin.write_all(&text);
    }
    let Some(printed) = wait(&mut child, stop)? else { return Ok(None) };
    serde_json::from_str(&printed).map(Some).map_err(|error| {
        failed(format!("time-calls printed something else than an outcome: {error}"))
    })
}

/// Everything it prints; nothing when told to stop.
fn wait(child: &mut Child, stop: &dyn Fn() -> bool) -> Result<Option<String>, LabError> {
    let failed = |what: String| LabError::Child { what };
    let reader = child.stdout.take().map(|mut stdout| {
        std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        })
    });
    let status = loop {
        if stop() {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(failed(error.to_string())),
        }
    };
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut complaint);
    }
    // The same Ctrl-C reaches the child.
    if !status.success() && stop() {
        return Ok(None);
    }
    if !status.success() {
        return Err(failed(format!("time-calls failed ({status}): {}", complaint.trim())));
    }
    let text =
        reader.and_then(|reader| reader.join().ok()).and_then(Result::ok).unwrap_or_default();
    Ok(Some(text))
}
