//! `xtask dist`: what is installed without a compiler. For x86-64 an archive, a `.deb`, an `.rpm`
//! and a wheel, with a Software Bill of Materials and checksums, for glibc 2.28 and later.
//!
//! Zig links against the symbol versions of that glibc. Its wheel and those of the
//! packers are in `packaging/requirements.txt`; the wheel brings a bill of its own. The same commit gives the same bytes: times are the commit's,
//! paths are cut off, and names are in order.

use crate::command::run as run_command;
use crate::command::{self, command, files_in, printed, remove_folder, root};
use crate::install::{self, Install};
use crate::python;
use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to make, and where.
#[derive(Debug, clap::Args)]
pub struct Dist {
    /// The folder that it is put into
    #[arg(long, value_name = "DIR", default_value = "target/dist/out")]
    output: PathBuf,
}

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The oldest glibc that it runs with.
const GLIBC: [u32; 2] = [2, 28];

/// What is linked with: glibc's own.
const LIBC: [&str; 6] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
];

/// Makes everything.
pub fn run(args: &Dist) -> Result<()> {
    let place = command::target().join("dist");
    fs::create_dir_all(&place)?;
    let out = root().join(&args.output);
    remove_folder(&out)?;
    fs::create_dir_all(&out)?;
    let tools = Tools::made(&place)?;
    tools.packages(&place, &out)?;
    checksums(&out)
}

/// The packers, and what they and the compiler are told.
struct Tools {
    bin: PathBuf,
    /// Seconds of the commit.
    epoch: String,
}

impl Tools {
    /// Installs them into an environment of their own.
    fn made(place: &Path) -> Result<Tools> {
        let list = root().join("packaging/requirements.txt");
        let wanted = fs::read_to_string(&list)?;
        let packages = ["--requirement", list.to_str().context("a path that is text")?];
        let python = python::environment(&place.join("tools"), &wanted, &packages)?;
        let bin = python.parent().context("a folder of programs")?.to_owned();
        let mut log = command("git log -1 --format=%ct");
        let epoch = printed(log.current_dir(root()))?.trim().to_owned();
        // The one that is no wheel. It runs for a second: it is compiled quickly.
        if !bin.join("cargo-cyclonedx").exists() {
            let mut install =
                command::cargo("install --quiet --debug --locked cargo-cyclonedx@0.5.9");
            run_command(install.arg("--root").arg(place.join("tools")))?;
        }
        Ok(Tools { bin, epoch })
    }

    fn program(&self, name: &str) -> Result<Command> {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&others));
        let home = std::env::var("CARGO_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"))?;
        // The last one that fits is taken.
        let [root_folder, target] =
            [root(), &command::target()].map(|path| path.display().to_string());
        let flags = [(root_folder, "cachewise"), (home, "cargo"), (target, "target")]
            .map(|(from, to)| format!("--remap-path-prefix={from}=/{to}"));
        let mut program = Command::new(self.bin.join(name));
        program.current_dir(root()).env("SOURCE_DATE_EPOCH", &self.epoch);
        program.env("PATH", std::env::join_paths(path)?);
        program.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        program.env("CARGO_PROFILE_RELEASE_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        program.env("CARGO_TARGET_DIR", command::target().join("dist/build"));
        Ok(program)
    }

    /// Everything but the sums.
    fn packages(&self, place: &Path, out: &Path) -> Result<()> {
        let release = self.release()?;
        // Debian's and the RPM distributions' folders for libraries; the archive's.
        for (kind, prefix, libdir) in [
            ("deb", "/usr", "lib/x86_64-linux-gnu"),
            ("rpm", "/usr", "lib64"),
            ("archive", "/usr/local", "lib"),
        ] {
            let tree = place.join(kind);
            remove_folder(&tree)?;
            let (prefix, libdir, destdir) = (prefix.into(), libdir.into(), Some(tree.clone()));
            install::placed(&Install { prefix, libdir, destdir, uninstall: false }, &release)?;
            let all = binaries(&tree)?;
            ensure!(all.len() == 5, "{}: found {} programs", tree.display(), all.len());
            all.iter().try_for_each(|file| needs_an_old_libc_alone(file))?;
        }
        let version = env!("CARGO_PKG_VERSION");
        let archive = out.join(format!("cachewise-{version}-{TRIPLE}.tar.gz"));
        self.archive(&place.join("archive/usr/local"), &archive)?;
        let package = package(place, version)?;
        let mut packer = self.program("cargo-deb")?;
        packer.args(["--no-build", "--no-strip", "--target", TRIPLE, "--output"]);
        packer.arg(out.join(format!("cachewise_{version}_amd64.deb")));
        run_command(packer.current_dir(&package))?;
        // Zstandard, its default: gzip's header has the time.
        let mut packer = self.program("cargo-generate-rpm")?;
        packer.args(["--arch", "x86_64", "--output"]);
        packer.arg(out.join(format!("cachewise-{version}.x86_64.rpm")));
        run_command(packer.current_dir(&package))?;
        self.bill_of_materials(&out.join(format!("cachewise-{version}-{TRIPLE}.cdx.json")))?;
        self.wheel(&place.join("archive/usr/local/bin/cachewise"), out)
    }

    /// Builds everything that is installed, each by itself; the folder it is in.
    fn release(&self) -> Result<PathBuf> {
        let [major, minor] = GLIBC;
        for package in install::PACKAGES {
            let mut build = self.program("cargo-zigbuild")?;
            build.args(["zigbuild", "--release", "--locked", "--package", package, "--target"]);
            run_command(build.arg(format!("{TRIPLE}.{major}.{minor}")))?;
        }
        Ok(command::target().join("dist/build").join(TRIPLE).join("release"))
    }

    /// Files in order, with the commit's time and nobody's names.
    fn archive(&self, tree: &Path, archive: &Path) -> Result<()> {
        let name = archive.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let inside = name.trim_end_matches(".tar.gz");
        let mut tar = command("tar --sort=name --owner=0 --group=0 --numeric-owner");
        tar.arg(format!("--mtime=@{}", self.epoch)).arg(format!("--transform=s,^\\.,{inside},"));
        tar.arg("--create").arg("--file").arg(archive).arg("--directory").arg(tree).arg(".");
        // No name and no time in gzip's header.
        run_command(tar.args(["--use-compress-program", "gzip -9n"]))
    }

    /// The Python package with the command in it, which lies there while the wheel is made.
    fn wheel(&self, program: &Path, out: &Path) -> Result<()> {
        let own = root().join("python/cachewise/bin/cachewise");
        fs::create_dir_all(own.parent().context("a folder")?)?;
        let kept = own.with_extension("kept");
        let is_there = own.exists();
        if is_there {
            fs::rename(&own, &kept)?;
        }
        fs::copy(program, &own)?;
        let [major, minor] = GLIBC;
        let mut maturin = self.program("maturin")?;
        maturin.args(["build", "--zig", "--locked", "--target", TRIPLE, "--compatibility"]);
        maturin.arg(format!("manylinux_{major}_{minor}"));
        maturin.args(["--manifest-path", "python/Cargo.toml", "--out"]).arg(out);
        let made = run_command(&mut maturin);
        fs::remove_file(&own)?;
        if is_there {
            fs::rename(&kept, &own)?;
        }
        made
    }

    /// What the command is made of, which the libraries add nothing to. The tool writes a file for each package, and
    /// into its folder.
    fn bill_of_materials(&self, bill: &Path) -> Result<()> {
        const NAME: &str = "bill-of-materials";
        let mut cyclonedx = self.program("cargo-cyclonedx")?;
        cyclonedx.args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
        cyclonedx.args(["--no-build-deps", "--target", TRIPLE, "--override-filename", NAME]);
        let made = run_command(cyclonedx.args(["--manifest-path", "crates/cli/Cargo.toml"]));
        let written = |package: &str| root().join(package).join(format!("{NAME}.json"));
        let text = made.and_then(|()| Ok(fs::read_to_string(written("crates/cli"))?));
        for folder in files_in(&root().join("crates"), "", "")? {
            let _ = fs::remove_file(folder.join(format!("{NAME}.json")));
        }
        for package in ["python", "xtask"] {
            let _ = fs::remove_file(written(package));
        }
        // Nobody else has these folders.
        Ok(fs::write(bill, text?.replace(&root().display().to_string(), "/cachewise"))?)
    }
}

/// The folder that the packers of `.deb` and `.rpm` read.
fn package(place: &Path, version: &str) -> Result<PathBuf> {
    let folder = place.join("package");
    remove_folder(&folder)?;
    fs::create_dir_all(folder.join("debian"))?;
    let packaging = root().join("packaging");
    let manifest = fs::read_to_string(packaging.join("packages.toml"))?;
    let manifest = manifest.replace("version = \"0.0.0\"", &format!("version = \"{version}\""));
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("lib.rs"), "")?;
    for (files, into) in [
        (files_in(&packaging.join("debian"), "", "")?, folder.join("debian")),
        (files_in(root(), "LICENSE-", "")?, folder.clone()),
    ] {
        for file in files {
            fs::copy(&file, into.join(file.file_name().context("a name")?))?;
        }
    }
    Ok(folder)
}

/// The files of a tree that are programs or shared libraries.
fn binaries(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for file in files_in(tree, "", "")? {
        if file.is_symlink() {
            continue;
        }
        if file.is_dir() {
            found.extend(binaries(&file)?);
        } else if fs::read(&file)?.starts_with(b"\x7fELF") {
            found.push(file);
        }
    }
    Ok(found)
}

/// An error where a file asks for a symbol of a later glibc, or for another library.
fn needs_an_old_libc_alone(file: &Path) -> Result<()> {
    let told = printed(command("objdump -pT").arg(file))?;
    let versions = told.split(['(', ')', ' ', '\n']).filter_map(|word| {
        let parts = word.strip_prefix("GLIBC_")?.split('.').map(str::parse);
        parts.collect::<Result<Vec<u32>, _>>().ok()
    });
    let file = file.display();
    // The preload libraries name no version and no library.
    if let Some(latest) = versions.max() {
        let is_old = latest.get(..2).is_some_and(|latest| latest <= &GLIBC[..]);
        ensure!(is_old, "{file}: asks for glibc {latest:?}, accepted {GLIBC:?} and earlier");
    }
    let needed = told.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
    let foreign: Vec<&str> = needed.map(str::trim).filter(|name| !LIBC.contains(name)).collect();
    ensure!(foreign.is_empty(), "{file}: needs {foreign:?}, accepted glibc's libraries");
    Ok(())
}

/// `SHA256SUMS`, as `sha256sum --check` reads it.
fn checksums(out: &Path) -> Result<()> {
    let names = files_in(out, "", "")?;
    let names = names.iter().filter_map(|file| file.file_name());
    let sums = printed(command("sha256sum --").args(names).current_dir(out))?;
    fs::write(out.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    Ok(())
}
