//! `xtask dist`: what is installed without a compiler, for x86-64. For glibc 2.28 and later an archive, a `.deb`, an
//! `.rpm` and a wheel; for any Linux a static command and a wheel for musl with it; bills of materials and checksums.
//!
//! Zig links against the symbol versions of that glibc. Its wheel and those of packers are in
//! `packaging/requirements.txt`. The same commit gives the same bytes: times are the commit's, paths are cut off, and
//! names are in order. (The static command has the C library of the machine that builds it.)

use crate::command::run as run_command;
use crate::command::{self, Lacking, command, files_in, printed, remove_folder, root};
use crate::{install, python};
use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options: what is made, and where.
#[derive(Debug, clap::Args)]
pub struct Dist {
    /// The folder that it is put into
    #[arg(long, value_name = "DIR", default_value = "target/dist/out")]
    output: PathBuf,
    /// Archive and .deb alone, for this machine's glibc, from what `xtask install` builds
    #[arg(long)]
    native: bool,
    /// The wheel alone, for this machine's glibc
    #[arg(long, conflicts_with = "native")]
    wheel: bool,
    /// The static command alone
    #[arg(long = "static", conflicts_with_all = ["native", "wheel"])]
    command: bool,
}

const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const MUSL: &str = "x86_64-unknown-linux-musl";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The oldest glibc that the packages run with.
const GLIBC: [u32; 2] = [2, 28];

/// Libraries of glibc that programs may link with.
const LIBC: [&str; 6] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
];

/// The packers that are no wheels, or old ones: RPM 6 refuses a package without SHA-256 sums.
const CRATES: [&str; 2] = ["cargo-cyclonedx@0.5.9", "cargo-generate-rpm@0.21.1"];

/// Makes everything, or the part that is asked for.
pub fn run(args: &Dist) -> Result<()> {
    needed(!(args.native || args.wheel))?;
    let place = command::target().join("dist");
    fs::create_dir_all(&place)?;
    let out = root().join(&args.output);
    remove_folder(&out)?;
    fs::create_dir_all(&out)?;
    let mut log = command("git log -1 --format=%ct");
    let epoch = printed(log.current_dir(root()))?.trim().to_owned();
    if args.wheel {
        step("the wheel, for this machine's glibc");
        let list = python::listed("maturin")?;
        let python = python::environment(&place.join("wheel-tools"), &list, &[&list])?;
        python::built(&python, &out)?;
    } else if args.command {
        let tools = Tools { bin: PathBuf::new(), epoch };
        tools.static_command(&place, &out)?;
    } else {
        let tools = Tools { bin: packers(&place, args.native)?, epoch };
        tools.packages(args.native, &place, &out)?;
    }
    checksums(&out)
}

/// Says on stderr what is done now, of which some parts take minutes.
fn step(what: &str) {
    eprintln!("=== {what}");
}

/// Everything that is missing, in one error: nothing is built before.
fn needed(musl: bool) -> Result<()> {
    let succeeds = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).output().is_ok_and(|ended| ended.status.success())
    };
    let environments = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))";
    let needs: [(&[&str], &str); 6] = [
        (&["cc", "--version"], "gcc"),
        (&["strip", "--version"], "binutils"),
        (&["git", "--version"], "git"),
        (&["tar", "--version"], "tar"),
        (&["gzip", "--version"], "gzip"),
        (&["python3", "-c", environments], "python3-venv (Python 3.11 or later)"),
    ];
    let missing = needs.into_iter().filter(|(words, _)| !succeeds(words));
    let missing: Vec<&str> = missing.map(|(_, package)| package).collect();
    ensure!(missing.is_empty(), Lacking::packages(&missing));
    if musl { Lacking::check_target(MUSL) } else { Ok(()) }
}

/// Installs what packs a `.deb`, or all packers, into an environment of their own; its folder of programs.
fn packers(place: &Path, deb_alone: bool) -> Result<PathBuf> {
    step("the packers");
    let list = fs::read_to_string(root().join("packaging/requirements.txt"))?;
    let is_wanted = |line: &&str| !deb_alone || line.starts_with("cargo-deb=");
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let wanted: Vec<_> = lines.filter(is_wanted).collect();
    let folder = place.join(if deb_alone { "deb-tools" } else { "tools" });
    let python = python::environment(&folder, &wanted.join("\n"), &wanted)?;
    // They run for seconds: they are compiled quickly.
    if !deb_alone {
        let mut install = command::cargo("install --quiet --debug --locked");
        run_command(install.args(CRATES).arg("--root").arg(&folder))?;
    }
    Ok(python.parent().context("a folder of programs")?.to_owned())
}

/// The packers, and what they and the compiler are told.
struct Tools {
    bin: PathBuf,
    /// Seconds of the commit.
    epoch: String,
}

impl Tools {
    fn program(&self, name: &str, flags: &[&str]) -> Result<Command> {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&others));
        let home = std::env::var("CARGO_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"))?;
        // The last one that fits is taken.
        let [root_folder, target] =
            [root(), &command::target()].map(|path| path.display().to_string());
        let cut = [(root_folder, "cachewise"), (home, "cargo"), (target, "target")]
            .map(|(from, to)| format!("--remap-path-prefix={from}=/{to}"));
        let flags = cut.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned()));
        let mut program = Command::new(name);
        program.current_dir(root()).env("SOURCE_DATE_EPOCH", &self.epoch);
        program.env("PATH", std::env::join_paths(path)?);
        program.env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join("\u{1f}"));
        program.env("CARGO_PROFILE_RELEASE_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        program.env("CARGO_TARGET_DIR", command::target().join("dist/build"));
        Ok(program)
    }

    /// Everything, or archive and `.deb` for this machine's glibc.
    fn packages(&self, native: bool, place: &Path, out: &Path) -> Result<()> {
        let release = if native { install::all_built()? } else { self.release()? };
        step("the trees");
        let place = place.join(if native { "native" } else { "trees" });
        let mut asked_for = [0; 2];
        // Debian's and the RPM distributions' folders for libraries; the archive's.
        for (kind, prefix, libdir) in [
            ("deb", "/usr", "lib/x86_64-linux-gnu"),
            ("rpm", "/usr", "lib64"),
            ("archive", "/usr/local", "lib"),
        ] {
            let destdir = place.join(kind);
            remove_folder(&destdir)?;
            let (prefix, libdir) = (Path::new(prefix), Path::new(libdir));
            let placed = install::placed(prefix, libdir, Some(&destdir), &release)?;
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
            for path in placed {
                let file = destdir.join(path.strip_prefix("/")?);
                if !file.is_symlink() && fs::read(&file).is_ok_and(|of| of.starts_with(b"\x7fELF"))
                {
                    let told = printed(Command::new("objdump").arg("-pT").arg(&file))?;
                    let latest = libc_alone(&told, native);
                    asked_for = asked_for.max(latest.with_context(|| file.display().to_string())?);
                }
            }
        }
        let most = if native { asked_for } else { GLIBC };
        ensure!(
            asked_for <= most,
            "expected glibc {GLIBC:?} asked for at most, found {asked_for:?}"
        );
        step("archive and packages");
        let [major, minor] = most;
        let tree = place.join("archive/usr/local");
        self.archive(&tree, &out.join(format!("cachewise-{VERSION}-{TRIPLE}.tar.gz")))?;
        // The compiler's own linker takes the unwinder from a library.
        let unwinder = if native { ", libgcc-s1" } else { "" };
        let debian = format!("libc6 (>= {major}.{minor}){unwinder}");
        let package = package(&place, &debian)?;
        let mut packer = self.program("cargo-deb", &[])?;
        packer.args(["--no-build", "--no-strip", "--target", TRIPLE, "--output"]);
        packer.arg(out.join(format!("cachewise_{VERSION}_amd64.deb")));
        run_command(packer.current_dir(&package))?;
        if native {
            return Ok(());
        }
        // Zstandard, its default: gzip's header has the time.
        let mut packer = self.program("cargo-generate-rpm", &[])?;
        packer.args(["--arch", "x86_64", "--output"]);
        packer.arg(out.join(format!("cachewise-{VERSION}.x86_64.rpm")));
        run_command(packer.current_dir(&package))?;
        let command = self.static_command(&place, out)?;
        step("bills of materials");
        self.bills_of_materials(out)?;
        step("the wheels");
        let manylinux = format!("manylinux_{major}_{minor}");
        self.wheel(TRIPLE, &manylinux, &tree.join("bin/cachewise"), out)?;
        self.wheel(MUSL, "musllinux_1_2", &command, out)
    }

    /// Builds everything that is installed, each by itself; the folder it is in.
    fn release(&self) -> Result<PathBuf> {
        let [major, minor] = GLIBC;
        for package in install::PACKAGES {
            step(package);
            let mut build = self.program("cargo-zigbuild", &[])?;
            build.args(["zigbuild", "--release", "--locked", "--package", package, "--target"]);
            run_command(build.arg(format!("{TRIPLE}.{major}.{minor}")))?;
        }
        let release = command::target().join("dist/build").join(TRIPLE).join("release");
        install::level_builds(&release, |package, level, folder| {
            step(&format!("{package}, {level}"));
            let flag = format!("-Ctarget-cpu={level}");
            let mut build = self.program("cargo-zigbuild", &[&flag])?;
            build.args(["zigbuild", "--release", "--locked", "--package", package, "--target"]);
            build.arg(format!("{TRIPLE}.{major}.{minor}")).env("CARGO_TARGET_DIR", folder);
            run_command(&mut build)?;
            Ok(folder.join(TRIPLE).join("release"))
        })?;
        Ok(release)
    }

    /// Builds the command without a dynamic linker: it runs on any Linux, and tunes nothing, since there is no C library
    /// beside it to compare with. The file, which is packed too.
    fn static_command(&self, place: &Path, out: &Path) -> Result<PathBuf> {
        step("the static command");
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut build = self.program(&cargo, &["-Ctarget-feature=+crt-static"])?;
        build.args(["build", "--release", "--locked", "--package", "cachewise-cli", "--target"]);
        let folder = command::target().join("static");
        run_command(build.arg(TRIPLE).env("CARGO_TARGET_DIR", &folder))?;
        let tree = place.join("static");
        remove_folder(&tree)?;
        fs::create_dir_all(&tree)?;
        let program = tree.join("cachewise");
        fs::copy(folder.join(TRIPLE).join("release/cachewise"), &program)?;
        run_command(Command::new("strip").arg(&program))?;
        let told = printed(Command::new("objdump").arg("-p").arg(&program))?;
        let asks = told.lines().any(|line| line.contains("NEEDED") || line.contains("INTERP"));
        ensure!(!asks, "{}: expected a static program, found dynamic linking", program.display());
        self.archive(&tree, &out.join(format!("cachewise-{VERSION}-x86_64-linux-static.tar.gz")))?;
        Ok(program)
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
    fn wheel(&self, triple: &str, platform: &str, program: &Path, out: &Path) -> Result<()> {
        let own = root().join("python/cachewise/bin/cachewise");
        fs::create_dir_all(own.parent().context("a folder")?)?;
        // Beside the package: all that is in it becomes part of the wheel.
        let kept = root().join("python/cachewise.kept");
        let is_there = own.exists();
        if is_there {
            fs::rename(&own, &kept)?;
        }
        fs::copy(program, &own)?;
        // A module is a shared object under musl too.
        let flags = if triple == MUSL { &["-Ctarget-feature=-crt-static"][..] } else { &[] };
        let mut maturin = self.program("maturin", flags)?;
        maturin.args(["build", "--zig", "--locked", "--target", triple, "--compatibility"]);
        maturin.args([platform, "--manifest-path", "python/Cargo.toml", "--out"]).arg(out);
        let made = run_command(&mut maturin);
        fs::remove_file(&own)?;
        if is_there {
            fs::rename(&kept, &own)?;
        }
        made
    }

    /// Writes bills of materials: of the command (the libraries add nothing to it) and of the wheel's module. The tool
    /// writes a file for each package, and into its folder.
    fn bills_of_materials(&self, out: &Path) -> Result<()> {
        const NAME: &str = "bill-of-materials";
        let mut cyclonedx = self.program("cargo-cyclonedx", &[])?;
        cyclonedx.args(["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
        cyclonedx.args(["--no-build-deps", "--target", TRIPLE, "--override-filename", NAME]);
        let made = run_command(cyclonedx.args(["--manifest-path", "lab/cli/Cargo.toml"]));
        let mut packages = Vec::new();
        for wing in ["lib", "memory", "lab"] {
            packages.extend(files_in(&root().join(wing), "", "")?);
        }
        packages.extend(["python", "xtask"].map(|package| root().join(package)));
        let named = [("lab/cli", "cachewise"), ("python", "cachewise-python")];
        let kept = made.and_then(|()| {
            named.into_iter().try_for_each(|(package, name)| {
                let text = fs::read_to_string(root().join(package).join(format!("{NAME}.json")))?;
                // Nobody else has these folders.
                let text = text.replace(&root().display().to_string(), "/cachewise");
                Ok(fs::write(out.join(format!("{name}-{VERSION}-{TRIPLE}.cdx.json")), text)?)
            })
        });
        for folder in packages {
            let _ = fs::remove_file(folder.join(format!("{NAME}.json")));
        }
        kept
    }
}

/// The folder that the packers of `.deb` and `.rpm` read.
fn package(place: &Path, debian: &str) -> Result<PathBuf> {
    let folder = place.join("package");
    remove_folder(&folder)?;
    fs::create_dir_all(folder.join("debian"))?;
    let packaging = root().join("packaging");
    let manifest = fs::read_to_string(packaging.join("packages.toml"))?;
    let manifest = manifest.replace("libc6 (>= 2.28)", debian).replace("0.0.0", VERSION);
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("lib.rs"), "")?;
    for file in files_in(&packaging.join("debian"), "", "")? {
        fs::copy(&file, folder.join("debian").join(file.file_name().context("a name")?))?;
    }
    Ok(folder)
}

/// The latest glibc that a file asks for, as `objdump -pT` tells of it; an error where it needs another library.
fn libc_alone(told: &str, native: bool) -> Result<[u32; 2]> {
    let needed = told.lines().filter_map(|line| line.trim().strip_prefix("NEEDED"));
    let is_ours = |name: &&str| LIBC.contains(name) || native && *name == "libgcc_s.so.1";
    let foreign: Vec<&str> = needed.map(str::trim).filter(|name| !is_ours(name)).collect();
    ensure!(foreign.is_empty(), "expected glibc's libraries needed alone, found {foreign:?}");
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
