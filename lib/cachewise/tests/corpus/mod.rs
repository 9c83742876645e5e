//! Replays `fuzz/corpus/profile/*` through the function that the fuzzer runs. What a fuzzer finds
//! becomes a test by copying its file there.
#![cfg(feature = "std")]

mod replay;

#[test]
fn what_fuzzers_found_is_handled() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/profile");
    let mut files = 0;
    for entry in std::fs::read_dir(corpus).expect("a corpus folder per target") {
        let path = entry.expect("a readable folder").path();
        println!("{}", path.display());
        replay::replay(&std::fs::read(&path).expect("a readable file"));
        files += 1;
    }
    assert!(files >= 3, "the seeds are missing");
}
