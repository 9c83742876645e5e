//! Builds the shared libraries, each by itself, for a release build of whoever carries them.
//!
//! A debug build carries none: its command finds those of `target/release`. Nor does a build whose
//! target has no `LD_PRELOAD`, one that is linked statically (no shared library can be made with its
//! flags), or one from sources without the libraries' own.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARIES: [(&str, &str); 4] = [
    ("cachewise-capi", "libcachewise_c.so"),
    ("cachewise-preload", "libcachewise_preload.so"),
    ("cachewise-preload-stats", "libcachewise_preload_stats.so"),
    ("cachewise-probe", "libcachewise_probe.so"),
];

/// CPUs that the preload library is built for as well: the compiler's `target-cpu`.
const LEVEL: &str = "x86-64-v4";

/// The folders of `lib/` that the libraries are made of.
const SOURCES: [&str; 6] = ["capi", "cachewise", "kernels", "preload", "preload-stats", "probe"];

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo:rerun-if-changed=build.rs");
    let glibc =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    let shared = !variable("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    let mut table = String::from("&[");
    if variable("PROFILE") == "release" && glibc && shared && root.join("lib/preload").is_dir() {
        println!("cargo:rerun-if-changed={}", root.join("profiles").display());
        for crate_of in SOURCES {
            for part in ["src", "Cargo.toml", "build.rs"] {
                let part = root.join("lib").join(crate_of).join(part);
                // Cargo takes a file that is named but missing for changed at every build.
                if part.exists() {
                    println!("cargo:rerun-if-changed={}", part.display());
                }
            }
        }
        let mut carry = |built: &Path, file: &str, name: &str| {
            let (built, copy) = (built.join(file), out.join(name.replace('/', "-")));
            fs::copy(&built, &copy).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
            let _ = write!(table, "(\"{name}\", include_bytes!({copy:?})),");
        };
        let plain =
            built(&root, &out, &variable("TARGET"), &LIBRARIES.map(|(package, _)| package), None);
        LIBRARIES.iter().for_each(|(_, file)| carry(&plain, file, file));
        if variable("CARGO_CFG_TARGET_ARCH") == "x86_64" {
            let (package, file) = LIBRARIES[1];
            let built = built(&root, &out, &variable("TARGET"), &[package], Some(LEVEL));
            carry(&built, file, &format!("glibc-hwcaps/{LEVEL}/{file}"));
        }
    }
    table.push(']');
    fs::write(out.join("embedded.rs"), table).expect("OUT_DIR can be written");
}

/// Cargo within Cargo: in a target folder of its own, since the outer one is locked, and with the
/// outer one's job slots, which it inherits. All libraries at once, since they ask for the same features.
fn built(root: &Path, out: &Path, target: &str, packages: &[&str], level: Option<&str>) -> PathBuf {
    let folder = out.join(level.unwrap_or("build"));
    let mut cargo = Command::new(env::var_os("CARGO").expect("Cargo sets CARGO"));
    cargo.args(["build", "--release", "--quiet", "--target", target]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    cargo.arg("--manifest-path").arg(root.join("Cargo.toml")).arg("--target-dir").arg(&folder);
    // Under `cargo clippy` it would be Clippy that compiles.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    // Cargo ignores a profile's `strip` for packages with an `opt-level` of their own.
    let mut flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    flags.push_str(if flags.is_empty() { "-Cstrip=debuginfo" } else { "\u{1f}-Cstrip=debuginfo" });
    if let Some(level) = level {
        flags.push_str(&format!("\u{1f}-Ctarget-cpu={level}"));
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags).env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    let status = cargo.status().expect("Cargo runs again");
    assert!(status.success(), "{status}");
    folder.join(target).join("release")
}
