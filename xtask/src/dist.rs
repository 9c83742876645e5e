//! `xtask dist`: what is installed without a compiler. An archive, a `.deb`, an `.rpm` and a wheel, with a Software
//! Bill of Materials and checksums, for glibc 2.28 and later (POWER: 2.34); for this machine's architecture, or others.
//! What it needs is asked before anything is built.
//!
//! Zig links against the symbol versions of that glibc, for other architectures too. Its wheel and those of
//! packers are in `packaging/requirements.txt`. The same commit gives the
//! same bytes: times are the commit's, paths are cut off, and names are in order.

use crate::command::run as run_command;
use crate::command::{self, Lacking, accepted, command, files_in, printed, remove_folder, root};
use crate::emulate_arch::{self, Target, tool};
use crate::install::{self, Install};
use crate::python;
use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options: architectures and output folder.
#[derive(Debug, clap::Args)]
pub struct Dist {
    /// The folder that it is put into
    #[arg(long, value_name = "DIR", default_value = "target/dist/out")]
    output: PathBuf,
    /// For this architecture: x86_64, aarch64, powerpc64le, or all of them [default: this machine's]
    #[arg(long = "arch", value_name = "NAME")]
    architecture: Option<String>,
    /// Archive and .deb alone, for this machine's glibc, from what `xtask install` builds
    #[arg(long, conflicts_with = "architecture")]
    native: bool,
    /// The wheel alone, for this machine's glibc
    #[arg(long, conflicts_with_all = ["architecture", "native"])]
    wheel: bool,
}

/// All architectures, as `--arch` takes it.
const ALL: &str = "all";

/// An architecture as Rust, Debian and RPM call it.
struct Architecture {
    name: &'static str,
    deb: &'static str,
    rpm: &'static str,
    /// The oldest that it runs with.
    glibc: Version,
}

const ARCHITECTURES: [Architecture; 3] = [
    Architecture { name: "x86_64", deb: "amd64", rpm: "x86_64", glibc: [2, 28] },
    Architecture { name: "aarch64", deb: "arm64", rpm: "aarch64", glibc: [2, 28] },
    // Zig's unwinder has the long double of 2.32; of later ones this is the first that wheels have a name for.
    Architecture { name: "powerpc64le", deb: "ppc64el", rpm: "ppc64le", glibc: [2, 34] },
];

/// A release of glibc.
type Version = [u32; 2];

/// Libraries of glibc that programs may link with.
const LIBC: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "ld64.so.2",
];

/// The packers that are no wheels, or old ones: RPM 6 refuses a package without SHA-256 sums.
const CRATES: [&str; 2] = ["cargo-cyclonedx@0.5.9", "cargo-generate-rpm@0.21.1"];

/// Makes everything.
pub fn run(args: &Dist) -> Result<()> {
    let mut names = ARCHITECTURES.map(|architecture| architecture.name).to_vec();
    names.push(ALL);
    let wanted = args.architecture.as_deref().unwrap_or(std::env::consts::ARCH);
    accepted("architecture", &[wanted.to_owned()], &names)?;
    let chosen = ARCHITECTURES.iter().filter(|one| wanted == ALL || wanted == one.name);
    let for_this_glibc = args.native || args.wheel;
    needed(chosen.clone().map(|one| one.name), for_this_glibc)?;
    let chosen: Vec<_> = chosen.map(|one| Ok((one, across(one.name)?))).collect::<Result<_>>()?;
    let place = command::target().join("dist");
    fs::create_dir_all(&place)?;
    let out = root().join(&args.output);
    remove_folder(&out)?;
    fs::create_dir_all(&out)?;
    if args.wheel {
        step("the wheel, for this machine's glibc");
        let list = python::listed("maturin")?;
        let python = python::environment(&place.join("wheel-tools"), &list, &[&list])?;
        python::built(&python, &out)?;
        return checksums(&out);
    }
    let tools = Tools::made(&place, args.native)?;
    for (architecture, across) in chosen {
        tools.made_for(architecture, across, args.native, &place, &out)?;
    }
    checksums(&out)
}

/// Says on stderr what is done now, of which some parts take minutes.
fn step(what: &str) {
    eprintln!("=== {what}");
}

/// Everything that is missing for these architectures, in one error: nothing is built before.
fn needed<'n>(architectures: impl Iterator<Item = &'n str>, for_this_glibc: bool) -> Result<()> {
    let mut missing = Vec::new();
    let mut note = |found: Result<()>| match found {
        Ok(()) => Ok(()),
        Err(error) => match error.downcast::<Lacking>() {
            Ok(Lacking(why)) => {
                missing.push(why);
                Ok(())
            }
            Err(error) => Err(error),
        },
    };
    let in_path = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    let programs =
        [("cc", "gcc"), ("strip", "binutils"), ("git", "git"), ("tar", "tar"), ("gzip", "gzip")];
    let lacked: Vec<&str> = programs
        .iter()
        .filter(|(program, _)| !in_path(program))
        .map(|(_, package)| *package)
        .collect();
    let packages = match lacked.is_empty() {
        true => Ok(()),
        false => Err(Lacking::packages(&lacked).into()),
    };
    note(packages)?;
    let mut python = Command::new("python3");
    let makes_environments =
        python.args(["-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"]);
    if !makes_environments.output().is_ok_and(|ended| ended.status.success()) {
        note(Err(
            Lacking("Python 3.11 or later with venv (Debian: python3-venv)".to_owned()).into()
        ))?;
    }
    for name in architectures.filter(|_| !for_this_glibc) {
        note(Lacking::check_target(&triple(name)))?;
        if name != std::env::consts::ARCH {
            note(emulate_arch::find(name)?.is_installed())?;
        }
    }
    ensure!(missing.is_empty(), Lacking(missing.join("; ")));
    Ok(())
}

/// The packers, and what they and the compiler are told.
struct Tools {
    bin: PathBuf,
    /// Seconds of the commit.
    epoch: String,
}

impl Tools {
    /// Installs them into an environment of their own: what packs a `.deb`, or all.
    fn made(place: &Path, deb_alone: bool) -> Result<Tools> {
        step("the packers");
        let list = fs::read_to_string(root().join("packaging/requirements.txt"))?;
        let wanted: Vec<_> = match deb_alone {
            true => list.lines().filter(|line| line.starts_with("cargo-deb=")).collect(),
            false => list.lines().filter(|line| !line.starts_with('#')).collect(),
        };
        let folder = place.join(if deb_alone { "deb-tools" } else { "tools" });
        let python = python::environment(&folder, &wanted.join("\n"), &wanted)?;
        let bin = python.parent().context("a folder of programs")?.to_owned();
        let mut log = command("git log -1 --format=%ct");
        let epoch = printed(log.current_dir(root()))?.trim().to_owned();
        // They run for seconds: they are compiled quickly.
        if !deb_alone {
            let mut install = command::cargo("install --quiet --debug --locked");
            run_command(install.args(CRATES).arg("--root").arg(&folder))?;
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

    /// Everything for one architecture.
    fn made_for(
        &self,
        architecture: &Architecture,
        across: Option<&Target>,
        native: bool,
        place: &Path,
        out: &Path,
    ) -> Result<()> {
        let Architecture { name, deb, rpm, glibc } = architecture;
        let triple = triple(name);
        let release = match native {
            true => install::all_built()?,
            false => self.release(&triple, *glibc)?,
        };
        step(&format!("{name}: the trees"));
        let place = place.join(if native { "native" } else { name });
        let mut asked_for = [0; 2];
        // Debian's and the RPM distributions' folders for libraries; the archive's.
        let debian = format!("lib/{name}-linux-gnu");
        for (kind, prefix, libdir) in
            [("deb", "/usr", &*debian), ("rpm", "/usr", "lib64"), ("archive", "/usr/local", "lib")]
        {
            let destdir = place.join(kind);
            remove_folder(&destdir)?;
            let install = Install::staged_in(prefix, libdir, &destdir);
            install::placed(&install, &release, across)?;
            // Debian's zsh looks there alone.
            if kind == "deb" {
                let zsh = destdir.join("usr/share/zsh");
                fs::rename(zsh.join("site-functions"), zsh.join("vendor-completions"))?;
            }
            // An RPM has the files' times.
            let time = format!("--date=@{}", self.epoch);
            let mut dated = Command::new("find");
            dated.arg(&destdir).args(["-exec", "touch", "--no-dereference", &time, "{}", "+"]);
            run_command(&mut dated)?;
            let all = binaries(&destdir)?;
            ensure!(all.len() == 5, "{}: found {} programs", destdir.display(), all.len());
            for file in &all {
                let told = printed(tool(across, "objdump").arg("-pT").arg(file))?;
                let latest = libc_alone(&told, native).with_context(|| file.display().to_string());
                asked_for = asked_for.max(latest?);
            }
        }
        ensure!(
            native || asked_for <= *glibc,
            "{name}: asks for glibc {asked_for:?}, accepted {glibc:?} and earlier"
        );
        // The compiler's own linker takes the unwinder from a library.
        step(&format!("{name}: archive and packages"));
        let [major, minor] = if native { asked_for } else { *glibc };
        let unwinder = if native { ", libgcc-s1" } else { "" };
        let version = env!("CARGO_PKG_VERSION");
        let archive = out.join(format!("cachewise-{version}-{triple}.tar.gz"));
        self.archive(&place.join("archive/usr/local"), &archive)?;
        let debian = format!("libc6 (>= {major}.{minor}){unwinder}");
        let package = package(&place, &debian, &format!(">= {major}.{minor}"))?;
        let mut packer = self.program("cargo-deb")?;
        packer.args(["--no-build", "--no-strip", "--target", &triple, "--output"]);
        packer.arg(out.join(format!("cachewise_{version}_{deb}.deb")));
        run_command(packer.current_dir(&package))?;
        if native {
            return Ok(());
        }
        // Zstandard, its default: gzip's header has the time.
        let mut packer = self.program("cargo-generate-rpm")?;
        packer.args(["--arch", rpm, "--output"]);
        packer.arg(out.join(format!("cachewise-{version}.{rpm}.rpm")));
        run_command(packer.current_dir(&package))?;
        step(&format!("{name}: bill of materials"));
        self.bills_of_materials(&triple, out)?;
        step(&format!("{name}: the wheel"));
        self.wheel(&triple, *glibc, &place.join("archive/usr/local/bin/cachewise"), out)
    }

    /// Builds everything that is installed, each by itself; the folder it is in.
    fn release(&self, triple: &str, [major, minor]: Version) -> Result<PathBuf> {
        for (at, package) in install::PACKAGES.iter().enumerate() {
            let all = install::PACKAGES.len();
            step(&format!("{triple}: {package} ({} of {all} that are compiled)", at + 1));
            let mut build = self.program("cargo-zigbuild")?;
            build.args(["zigbuild", "--release", "--locked", "--package", package, "--target"]);
            run_command(build.arg(format!("{triple}.{major}.{minor}")))?;
        }
        Ok(command::target().join("dist/build").join(triple).join("release"))
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
    fn wheel(&self, triple: &str, glibc: Version, program: &Path, out: &Path) -> Result<()> {
        let own = root().join("python/cachewise/bin/cachewise");
        fs::create_dir_all(own.parent().context("a folder")?)?;
        // Beside the package: all that is in it becomes part of the wheel.
        let kept = root().join("python/cachewise.kept");
        let is_there = own.exists();
        if is_there {
            fs::rename(&own, &kept)?;
        }
        fs::copy(program, &own)?;
        let [major, minor] = glibc;
        let mut maturin = self.program("maturin")?;
        maturin.args(["build", "--zig", "--locked", "--target", triple, "--compatibility"]);
        maturin.arg(format!("manylinux_{major}_{minor}"));
        maturin.args(["--manifest-path", "python/Cargo.toml", "--out"]).arg(out);
        let made = run_command(&mut maturin);
        fs::remove_file(&own)?;
        if is_there {
            fs::rename(&kept, &own)?;
        }
        made
    }

    /// Writes bills of materials: of the command (the libraries add nothing to it) and of the wheel's module. The tool writes a
    /// file for each package, and into its folder.
    fn bills_of_materials(&self, triple: &str, out: &Path) -> Result<()> {
        const NAME: &str = "bill-of-materials";
        let mut cyclonedx = self.program("cargo-cyclonedx")?;
        cyclonedx.args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
        cyclonedx.args(["--no-build-deps", "--target", triple, "--override-filename", NAME]);
        let made = run_command(cyclonedx.args(["--manifest-path", "lab/cli/Cargo.toml"]));
        let mut packages = Vec::new();
        for wing in ["lib", "memory", "lab"] {
            packages.extend(files_in(&root().join(wing), "", "")?);
        }
        packages.extend(["python", "xtask"].map(|package| root().join(package)));
        let version = env!("CARGO_PKG_VERSION");
        let named = [("lab/cli", "cachewise"), ("python", "cachewise-python")];
        let kept = made.and_then(|()| {
            named.into_iter().try_for_each(|(package, name)| {
                let text = fs::read_to_string(root().join(package).join(format!("{NAME}.json")))?;
                // Nobody else has these folders.
                let text = text.replace(&root().display().to_string(), "/cachewise");
                Ok(fs::write(out.join(format!("{name}-{version}-{triple}.cdx.json")), text)?)
            })
        });
        for folder in packages {
            let _ = fs::remove_file(folder.join(format!("{NAME}.json")));
        }
        kept
    }
}

/// An architecture as Rust's target.
fn triple(name: &str) -> String {
    format!("{name}-unknown-linux-gnu")
}

/// How an architecture's programs are run and taken apart, where it is not this machine's.
fn across(name: &str) -> Result<Option<&'static Target>> {
    if name == std::env::consts::ARCH {
        return Ok(None);
    }
    emulate_arch::find(name).map(Some)
}

/// The folder that the packers of `.deb` and `.rpm` read.
fn package(place: &Path, debian: &str, glibc: &str) -> Result<PathBuf> {
    let folder = place.join("package");
    remove_folder(&folder)?;
    fs::create_dir_all(folder.join("debian"))?;
    let packaging = root().join("packaging");
    let manifest = fs::read_to_string(packaging.join("packages.toml"))?;
    let manifest = manifest.replace("libc6 (>= 2.28)", debian).replace(">= 2.28", glibc);
    let manifest = manifest.replace("0.0.0", env!("CARGO_PKG_VERSION"));
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("lib.rs"), "")?;
    for file in files_in(&packaging.join("debian"), "", "")? {
        fs::copy(&file, folder.join("debian").join(file.file_name().context("a name")?))?;
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

/// The latest glibc that a file asks for, as `objdump -pT` tells of it; an error where it needs another library.
fn libc_alone(told: &str, native: bool) -> Result<Version> {
    let needed = told.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
    let is_ours = |name: &&str| LIBC.contains(name) || native && *name == "libgcc_s.so.1";
    let foreign: Vec<&str> = needed.map(str::trim).filter(|name| !is_ours(name)).collect();
    ensure!(foreign.is_empty(), "needs {foreign:?}, accepted glibc's libraries");
    let versions = told.split(['(', ')', ' ', '\n']).filter_map(|word| {
        let mut parts = word.strip_prefix("GLIBC_")?.split('.').map(str::parse);
        Some([parts.next()?.ok()?, parts.next()?.ok()?])
    });
    // The preload libraries name no version and no library.
    Ok(versions.max().unwrap_or_default())
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
