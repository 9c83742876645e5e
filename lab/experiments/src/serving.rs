//! A helper, from the end that answers: above all that it can be asked for.

use crate::compare_latency::launch;
use crate::elsewhere::Elsewhere;
use crate::fork_pages::forking::Looper;
use crate::helper::{Request, send};
use serde::Serialize;
use serde_json::Value;
use std::io::{self, BufRead, Write};
use std::time::Duration;

/// Serves requests until the input ends.
///
/// # Errors
/// Errors of reading and writing; whatever else fails is an answer.
pub fn serve(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    // Ctrl-C reaches the whole foreground group; this process ends when its input does.
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let (mut looper, mut elsewhere) = (Looper::default(), Elsewhere::default());
    for line in input.lines() {
        let line = line?;
        let answer = match serde_json::from_str(&line) {
            Err(error) => Err(format!("expected a request, found \"{line}\": {error}")),
            Ok(Request::Fork { buffer, loops, asleep_ms }) => {
                answer(looper.run(buffer, loops, Duration::from_millis(asleep_ms)))
            }
            Ok(Request::Libc(calls)) => answer(elsewhere.time(&calls)),
            // Whoever asked for it ends this process, which needs no asking.
            Ok(Request::Calls(order)) => answer(launch::run(&order, &|| false)),
        };
        send(&mut output, &answer)?;
        output.flush()?;
    }
    Ok(())
}

fn answer(found: Result<impl Serialize, impl ToString>) -> Result<Value, String> {
    let found = found.map_err(|error| error.to_string())?;
    serde_json::to_value(found).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_is_refused_by_name_and_the_next_is_served() {
        let requests = "nonsense\n{\"fly\":1}\n{\"fork\":{\"buffer\":4096,\"loops\":1}}\n";
        let mut told = Vec::new();
        serve(requests.as_bytes(), &mut told).expect("served");
        let told = String::from_utf8(told).expect("text");
        let refused = |line: &str| {
            serde_json::from_str::<Result<Value, String>>(line).expect("an answer").expect_err(line)
        };
        let said: Vec<String> = told.lines().map(refused).collect();
        assert!(said[0].contains("expected a request, found \"nonsense\""), "{said:?}");
        assert!(said[1].contains("unknown variant `fly`"), "{said:?}");
        // The test harness runs this in a thread of its own.
        assert!(said[2].contains("one thread"), "{said:?}");
    }
}
