//! A few real programs, for correctness: the same output with the library and without. All of them,
//! with times: `cargo run --release -p xtask -- programs`.

use crate::support::{plain, preloaded, text};
use std::path::Path;
use std::process::Command;

/// Lines for a shell.
const LINES: [&str; 8] = [
    "gzip -9 -n -c material",
    "xz -1 -c material",
    "zstd -q -c material",
    "sort material",
    "sha256sum material",
    "git --no-pager diff --no-index --stat /dev/null /dev/null",
    "python3 -c \"import hashlib, json
x = bytearray(open('material', 'rb').read())
for shift in (1, 15, 64, 4095): x[shift:] = x[:-shift]; x += b'z' * shift
d = {str(i): [i] * 9 for i in range(20000)}
print(hashlib.sha256(x).hexdigest(), hash(json.dumps(d) == json.dumps(dict(d))))\"",
    "sqlite3 :memory: 'create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000)
insert into t select x, hex(zeroblob(x % 400)) || x from c;
create index i on t(b); select count(*), sum(length(b)), max(b) from t;
delete from t where a % 3 = 0; vacuum; pragma integrity_check;'",
];

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn output_is_the_same_with_the_library_and_without() {
    let directory = tempfile::tempdir().expect("a directory");
    // Bytes that compress to about half.
    let material = (0..3_000_000u32).scan(1u32, |state, _| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(b'a' + (*state >> 24 & 15) as u8)
    });
    let file = directory.path().join("material");
    std::fs::write(file, material.collect::<Vec<u8>>()).expect("written");
    for line in LINES {
        let run = |make: fn(&Path) -> Command| {
            let mut shell = make(Path::new("sh"));
            shell.args(["-c", line]).current_dir(&directory).output().expect("a shell")
        };
        let (without, with) = (run(plain), run(preloaded));
        let told = [&without, &with].map(|output| text(&output.stderr));
        if without.status.code() == Some(127) {
            eprintln!("{line}: SKIPPED, not installed");
            continue;
        }
        assert!(without.status.success() && with == without, "{line}: {}, {told:?}", with.status);
    }
}
