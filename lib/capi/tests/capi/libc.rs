//! A profile that leaves sizes to the C library, in programs linked in every way.

use crate::decided::decided;
use crate::support::{Linked, compile, libraries, run};
use std::process::Command;

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn libc_is_called_where_there_is_one_and_the_nearest_kernel_where_none_can_be_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let decisions = "decide copy unknown 256 max libc copy.bytes\n\
                     decide zero never 256 max libc zero.bytes\n\
                     decide equal unknown 256 max libc equal.bytes\n";
    let profile = decided(directory.path(), "libc.profile", decisions);
    let by_name = libraries().join("libcachewise.so");
    let gnu: &[&str] = &["-std=gnu11"];
    for (flags, linked, argument, expected) in [
        (gnu, Linked::Shared, None, "libc libc libc\n"),
        (gnu, Linked::Static, None, "libc libc libc\n"),
        (&["-std=gnu11", "-DBY_NAME", "-ldl"], Linked::Shared, Some(&by_name), "libc libc libc\n"),
        (&["-std=gnu11", "-static"], Linked::Static, None, "copy.bytes zero.bytes equal.bytes\n"),
    ] {
        let program = compile(directory.path(), "tests/c/libc.c", flags, linked);
        let mut command = Command::new(&program);
        command.env("CACHEWISE_PROFILE", &profile).args(argument).env_remove("LD_PRELOAD");
        let output = run(&mut command);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{flags:?}");
    }
}
