//! Tests that have a process to themselves: this very binary, told to run one test.

/// One test in a process of its own, which the variable tells.
pub fn rerun(test: &str, variable: &str) {
    let this = std::env::current_exe().expect("this test");
    let mut command = std::process::Command::new(this);
    command.args(["--exact", test, "--test-threads=1", "--nocapture"]).env(variable, "1");
    let output = command.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}\n{errors}");
}
