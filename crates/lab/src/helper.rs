//! A process of its own, for what this one cannot do: forking with one thread, calling the C library
//! under other tunables, timing single calls in a fresh layout.
//!
//! One protocol for all: a request is a line of JSON, and so is its answer, a `Result` whose error is why
//! there is none. The program serves them ([`serve`]) until its input ends; [`Helper`] is its other end.

mod process;
mod request;
mod serving;

pub use process::Helper;
pub use request::{Calls, Order, Request};
pub use serving::serve;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::path::Path;

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
        assert!(said[0].contains("found \"nonsense\", accepted a request"), "{said:?}");
        assert!(said[1].contains("unknown variant `fly`"), "{said:?}");
        // The test harness runs this in a thread of its own.
        assert!(said[2].contains("one thread"), "{said:?}");
    }

    #[test]
    fn a_program_that_does_not_answer_is_refused() {
        let fork = Request::Fork { buffer: 4096, loops: 1 };
        let mut silent = Helper::start(Path::new("/bin/true"), None).expect("it starts");
        assert!(silent.ask::<i64>(&fork).is_err());
        let parrot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parrot.sh");
        let mut parrot = Helper::start(&parrot, None).expect("it starts");
        assert_eq!(parrot.ask_or_keep::<i64>(&fork), None);
        let error = parrot.take_failure().expect("its own words").to_string();
        assert!(error.contains("accepted a helper's answer"), "{error}");
        assert!(parrot.ask_until::<i64>(&fork, &|| true).is_ok_and(|answer| answer.is_none()));
        assert!(Helper::start(Path::new("/nonexistent/program"), None).is_err());
    }
}
