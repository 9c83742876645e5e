//! The library as a program uses it: every operation's bytes, profiles, where decisions come from.
//!
//! What the process decides once is tested in a process of its own: this very binary, told to run one test. An
//! emulator starts none, so elsewhere than on x86-64 such tests are left out.

mod bytes;
mod corpus;
#[cfg(target_arch = "x86_64")]
mod only;
#[cfg(target_arch = "x86_64")]
mod profile;
#[cfg(target_arch = "x86_64")]
mod racing;
#[cfg(target_arch = "x86_64")]
mod sources;

/// Marks the process that one test has to itself.
#[cfg(target_arch = "x86_64")]
const CHILD: &str = "CACHEWISE_TEST_CHILD";

/// The line of a child, by which its parent knows that the test was run and not passed over.
#[cfg(target_arch = "x86_64")]
const RUN: &str = "run in a process of its own";

#[cfg(target_arch = "x86_64")]
fn is_child() -> bool {
    let is_child = std::env::var_os(CHILD).is_some();
    if is_child {
        println!("{RUN}");
    }
    is_child
}

/// Returns whether a child ran its test, and the test passed.
#[cfg(target_arch = "x86_64")]
fn has_passed(output: &std::process::Output) -> bool {
    let out = String::from_utf8_lossy(&output.stdout);
    output.status.success() && out.contains(RUN) && out.contains("1 passed")
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

/// Returns whether this is the process that a test has to itself; if not, the test is run in one, which says nothing on stderr.
#[cfg(target_arch = "x86_64")]
fn alone(test: &str) -> bool {
    if !is_child() {
        let output = child(test).output().expect("the child runs");
        let told = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(has_passed(&output) && errors.is_empty(), "{told}\n{errors}");
        return false;
    }
    true
}
