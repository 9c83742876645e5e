//! The library as a program uses it: every operation's bytes, profiles, where decisions come from, threads.
//!
//! What the process decides once is tested in a process of its own: this very binary, told to run one test. An
//! emulator starts none, so elsewhere than on x86-64 such tests are left out.

mod bytes;
mod corpus;
#[cfg(target_arch = "x86_64")]
mod kernel_boot;
#[cfg(target_arch = "x86_64")]
mod loaded;
#[cfg(target_arch = "x86_64")]
mod only;
#[cfg(target_arch = "x86_64")]
mod parallel;
mod profile;
#[cfg(target_arch = "x86_64")]
mod racing;
#[cfg(target_arch = "x86_64")]
mod sources;

/// Marks the process that one test has to itself.
#[cfg(target_arch = "x86_64")]
const CHILD: &str = "CACHEWISE_TEST_CHILD";

#[cfg(target_arch = "x86_64")]
fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// This binary, to run one test. No profile but those that the case names.
#[cfg(target_arch = "x86_64")]
fn child(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, "1").env("XDG_CONFIG_HOME", "/nonexistent");
    command.env_remove("CACHEWISE_PROFILE").env_remove("CACHEWISE_QUIET");
    command
}

/// Returns whether this is the process that a test has to itself; if not, the test is run in one.
#[cfg(target_arch = "x86_64")]
fn alone(test: &str) -> bool {
    if !is_child() {
        let output = child(test).output().expect("the child runs");
        let told = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("1 passed"), "{told}\n{errors}");
    }
    is_child()
}
