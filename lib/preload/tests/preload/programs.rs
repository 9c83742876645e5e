//! A few real programs, for correctness: the same output with the library and without. All of them,
//! with times: `cargo run --release -p xtask -- programs`.

use crate::support::{plain, preloaded};
use std::path::Path;
use std::process::{Command, Output};

/// Bytes that compress to about half.
fn material(directory: &Path) -> std::path::PathBuf {
    let mut state = 1u32;
    let bytes: Vec<u8> = (0..3_000_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b'a' + (state >> 24 & 15) as u8
        })
        .collect();
    let path = directory.join("material");
    std::fs::write(&path, bytes).expect("written");
    path
}

/// Equal output with and without; skipped by name where the program is missing.
fn same(program: &str, arguments: &[&str], directory: &Path) {
    let shell = |make: fn(&Path) -> Command| -> Option<Output> {
        let mut command = make(Path::new(program));
        command.args(arguments).current_dir(directory).output().ok()
    };
    let (Some(without), Some(with)) = (shell(plain), shell(preloaded)) else {
        eprintln!("{program}: SKIPPED, not installed");
        return;
    };
    assert!(without.status.success(), "{program}: {without:?}");
    assert_eq!(with.status, without.status, "{program}: {}", String::from_utf8_lossy(&with.stderr));
    assert!(with.stdout == without.stdout, "{program} {arguments:?}: other output");
    assert_eq!(
        String::from_utf8_lossy(&with.stderr),
        String::from_utf8_lossy(&without.stderr),
        "{program}"
    );
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn output_is_the_same_with_the_library_and_without() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    material(directory);
    same("gzip", &["-9", "-n", "-c", "material"], directory);
    same("xz", &["-1", "-c", "material"], directory);
    same("zstd", &["-q", "-c", "material"], directory);
    same("sort", &["material"], directory);
    same("sha256sum", &["material"], directory);
    same(
        "git",
        &["--no-pager", "diff", "--no-index", "--stat", "/dev/null", "/dev/null"],
        directory,
    );
    let python = "import hashlib, json\n\
        x = bytearray(open('material', 'rb').read())\n\
        for shift in (1, 15, 64, 4095): x[shift:] = x[:-shift]; x += b'z' * shift\n\
        d = {str(i): [i] * 9 for i in range(20000)}\n\
        print(hashlib.sha256(x).hexdigest(), hash(json.dumps(d) == json.dumps(dict(d))))";
    same("python3", &["-c", python], directory);
    let sql = "create table t(a integer primary key, b text);\
        with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000)\
        insert into t select x, hex(zeroblob(x % 400)) || x from c;\
        create index i on t(b); select count(*), sum(length(b)), max(b) from t;\
        delete from t where a % 3 = 0; vacuum; pragma integrity_check;";
    same("sqlite3", &[":memory:", sql], directory);
}
