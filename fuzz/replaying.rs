//! Replays `fuzz/corpus/TARGET/*` through the function that the fuzzer runs. What a fuzzer finds becomes a
//! test by copying its file there. Every crate with a target includes this in a test.

pub fn replay_corpus(target: &str, least: usize, replay: impl Fn(&[u8])) {
    let corpora = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut files = 0;
    for entry in std::fs::read_dir(corpora.join(target)).expect("a corpus folder per target") {
        let path = entry.expect("a readable folder").path();
        println!("{}", path.display());
        replay(&std::fs::read(&path).expect("a readable file"));
        files += 1;
    }
    assert!(files >= least, "{target} has {files} files, its seeds are missing");
}
