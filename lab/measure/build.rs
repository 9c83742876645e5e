//! Hands the compiler's version to the machine description: results depend on it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    let version = version.trim();
    let version = if version.is_empty() { "rustc, version unknown" } else { version };
    println!("cargo::rustc-env=CACHEWISE_COMPILER={version}");
}
