//! An architecture, and how programs are built for it and run.

use crate::command::{self, Lacking, built, root};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An architecture that can be emulated.
pub struct Target {
    /// As stages, the command line and compilers call it.
    pub(super) name: &'static str,
    pub(super) emulator: &'static str,
    /// The Debian package of its C library.
    pub(super) libc: &'static str,
    /// Further CPUs: QEMU's name for one, and the kernels that behave differently there.
    pub(super) variants: &'static [(&'static str, &'static str)],
}

impl Target {
    /// As Rust calls it.
    pub(super) fn triple(&self) -> String {
        format!("{}-unknown-linux-gnu", self.name)
    }

    /// Debian's folder for the target's libraries.
    pub(super) fn root(&self) -> String {
        format!("/usr/{}-linux-gnu", self.name)
    }

    /// A program of the cross compiler.
    pub(super) fn tool(&self, name: &str) -> String {
        format!("{}-linux-gnu-{name}", self.name)
    }

    /// An error where its compiler, a library or the emulator is not there.
    pub(crate) fn is_installed(&self) -> Result<()> {
        Lacking::check_target(&self.triple())?;
        let file = |name: &str| format!("/usr/bin/{name}");
        Lacking::check([
            (&*file(&self.tool("gcc")), &*format!("gcc-{}-linux-gnu", self.name)),
            (&*format!("{}/lib/libc.so.6", self.root()), self.libc),
            (&*file(self.emulator), "qemu-user"),
        ])
    }

    /// A program of the target.
    pub(crate) fn emulated(&self, options: &[&str], program: &Path) -> Command {
        let mut command = Command::new(self.emulator);
        command.args(["-L", &self.root()]).args(options).arg(program);
        // Decisions are the computed ones, whoever runs this.
        command.env_remove("CACHEWISE_PROFILE").env("XDG_CONFIG_HOME", "/nonexistent");
        command
    }
}

/// A program of binutils, for another architecture or for this one.
pub(crate) fn tool(across: Option<&Target>, name: &str) -> Command {
    Command::new(across.map_or_else(|| name.to_owned(), |target| target.tool(name)))
}

/// Has cargo build for the target; what came out, by name.
pub(super) fn cargo(target: &Target, words: &str) -> Result<BTreeMap<String, PathBuf>> {
    let triple = target.triple();
    let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace('-', "_"));
    let mut cargo = command::cargo(words);
    cargo
        .args(["--target", &triple, "--target-dir"])
        .arg(root().join("target/emulate-arch"))
        // An incremental build costs compile time and serves nothing here.
        .args(["--config", "profile.dev.incremental=false"])
        .args(["--config", "profile.dev.package.cachewise-measure.opt-level=1"])
        .args(["--config", "profile.dev.package.cachewise-experiments.opt-level=0"])
        .args(["--config", "profile.dev.package.cachewise-tune.opt-level=0"])
        .env(linker, target.tool("gcc"))
        .current_dir(root());
    built(&mut cargo, None)
}
