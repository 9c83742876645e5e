//! `xtask install`: the command with its manual, the C libraries with headers and pkg-config files, and
//! the preload libraries, built for release and put where a system expects them.

use crate::command::{self, cargo, root};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where things go.
#[derive(Debug, clap::Args)]
pub struct Install {
    /// The tree that the files will be used in
    #[arg(long, value_name = "DIR", default_value = "/usr/local")]
    prefix: PathBuf,
    /// Directory for libraries; relative to the prefix unless absolute
    #[arg(long, value_name = "DIR", default_value = "lib")]
    libdir: PathBuf,
    /// Put the tree under this directory instead, as packagers do; no file names it
    #[arg(long, value_name = "DIR")]
    destdir: Option<PathBuf>,
}

/// What is exported, for the static library, which has no list of its own.
const EXPORTED: &str = "cw_*";

/// Builds and installs.
pub fn run(args: &Install) -> Result<()> {
    if !args.prefix.is_absolute() {
        bail!("--prefix: found {}, accepted an absolute path", args.prefix.display());
    }
    let release = build()?;
    let libdir = args.prefix.join(&args.libdir);
    let staged = |path: &Path| match &args.destdir {
        // An absolute path joined would replace the directory.
        Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_path_buf(),
    };
    let (libraries, headers) = (staged(&libdir), staged(&args.prefix.join("include")));
    let (programs, manual) =
        (staged(&args.prefix.join("bin")), staged(&args.prefix.join("share/man/man1")));
    let pkgconfig = libraries.join("pkgconfig");
    for directory in [&libraries, &headers, &pkgconfig, &programs, &manual] {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    let version = env!("CARGO_PKG_VERSION");
    let (major, _) = version.split_once('.').context("a version has dots")?;

    for (built, stem) in [
        ("libcachewise_c.so", "libcachewise.so"),
        ("libcachewise_preload.so", "libcachewise_preload.so"),
        ("libcachewise_pool_c.so", "libcachewise_pool.so"),
        ("libcachewise_pool_preload.so", "libcachewise_pool_preload.so"),
    ] {
        let real = format!("{stem}.{version}");
        place(&release.join(built), &libraries.join(&real), 0o755)?;
        link(&real, &libraries.join(format!("{stem}.{major}")))?;
        link(&real, &libraries.join(stem))?;
    }
    for (package, built, name) in [
        ("capi", "libcachewise_c.a", "cachewise"),
        ("pool-capi", "libcachewise_pool_c.a", "cachewise_pool"),
    ] {
        let file = format!("{name}.h");
        let header = root().join("crates").join(package).join("include").join(&file);
        let one_object = static_library(&release.join(built), &header, name, &release)?;
        place(&one_object, &libraries.join(format!("lib{name}.a")), 0o644)?;
        place(&header, &headers.join(&file), 0o644)?;
    }
    let about = "Copy, zero and compare memory the way this machine's measured profile says";
    for (name, about) in [("cachewise", about), ("cachewise_pool", "A pool of prezeroed pages")] {
        let text = package_file(name, about, &args.prefix, &libdir);
        write(&pkgconfig.join(format!("{name}.pc")), &text)?;
    }
    let command = release.join("cachewise");
    place(&command, &programs.join("cachewise"), 0o755)?;
    let pages = release.join("man");
    command::run(Command::new(&command).args(["man", "--to"]).arg(&pages))?;
    for page in fs::read_dir(&pages)? {
        let page = page?;
        place(&page.path(), &manual.join(page.file_name()), 0o644)?;
    }
    Ok(())
}

/// Builds the command, and each library by itself, so that none is built with another package's
/// features; returns the directory they are in.
pub(crate) fn build() -> Result<PathBuf> {
    built("cachewise-cli")?;
    built("cachewise-pool-capi")?;
    built("cachewise-pool-preload")?;
    built("cachewise-capi")?;
    built("cachewise-preload")
}

/// Builds one of them.
pub(crate) fn built(package: &str) -> Result<PathBuf> {
    command::run(cargo(&["build", "--release", "-p", package]).current_dir(root()))?;
    let mut metadata = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let output = command::output(metadata.current_dir(root()))?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let target = metadata["target_directory"].as_str().context("cargo metadata: no target")?;
    Ok(Path::new(target).join("release"))
}

/// The functions that a header declares: what begins as they do and is called.
fn functions(header: &str) -> Vec<&str> {
    let mut names: Vec<&str> = header
        .split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter_map(|word| word.strip_suffix('('))
        .filter(|word| word.starts_with("cw_"))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The static library as one object that offers [`EXPORTED`] alone, so that nothing of Rust's meets
/// another Rust library in a program. Without binutils it is installed as it was built.
fn static_library(built: &Path, header: &Path, name: &str, scratch: &Path) -> Result<PathBuf> {
    let object = scratch.join(format!("{name}-static.o"));
    let archive = scratch.join(format!("lib{name}-static.a"));
    let header = fs::read_to_string(header).with_context(|| header.display().to_string())?;
    let names = functions(&header);
    let mut partial = Command::new("ld");
    partial.args(["-r", "--gc-sections", "-o"]).arg(&object);
    for name in names {
        partial.arg("-u").arg(name);
    }
    partial.arg(built);
    let mut hide = Command::new("objcopy");
    hide.args(["--wildcard", "--strip-debug", "--keep-global-symbol", EXPORTED]);
    // The compiler's own form of core, which several objects joined are not any more.
    hide.args(["--remove-section", ".llvmbc", "--remove-section", ".llvmcmd"]).arg(&object);
    let mut pack = Command::new("ar");
    pack.arg("rcsD").arg(&archive).arg(&object);
    let _ = fs::remove_file(&archive);
    for command in [&mut partial, &mut hide, &mut pack] {
        match command.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                eprintln!(
                    "{:?}: not found; the static library keeps its inner symbols and is large",
                    command.get_program()
                );
                return Ok(built.to_path_buf());
            }
            Err(error) => return Err(error).with_context(|| format!("{command:?}")),
        }
    }
    Ok(archive)
}

fn package_file(name: &str, about: &str, prefix: &Path, libdir: &Path) -> String {
    format!(
        "prefix={}\nlibdir={}\nincludedir=${{prefix}}/include\n\nName: {name}\nDescription: {about}\n\
         Version: {}\nLibs: -L${{libdir}} -l{name}\nCflags: -I${{includedir}}\n",
        prefix.display(),
        libdir.display(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Copies under another name and moves into place: no program ever sees half a library, and one
/// that runs keeps the old.
fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let beside = beside(to);
    fs::copy(from, &beside)
        .with_context(|| format!("{} to {}", from.display(), beside.display()))?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(mode))?;
    finish(&beside, to)
}

fn write(to: &Path, text: &str) -> Result<()> {
    let beside = beside(to);
    fs::write(&beside, text).with_context(|| beside.display().to_string())?;
    finish(&beside, to)
}

fn link(to: &str, at: &Path) -> Result<()> {
    let beside = beside(at);
    let _ = fs::remove_file(&beside);
    std::os::unix::fs::symlink(to, &beside).with_context(|| beside.display().to_string())?;
    finish(&beside, at)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn finish(beside: &Path, to: &Path) -> Result<()> {
    fs::rename(beside, to).with_context(|| to.display().to_string())?;
    println!("{}", to.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_declares_is_kept_in_the_static_library() {
        let read = |file: &str| fs::read_to_string(root().join(file)).expect("a header");
        let pool = read("crates/pool-capi/include/cachewise_pool.h");
        let names = functions(&pool);
        for name in ["cw_pool_create", "cw_pool_zalloc", "cw_pool_destroy"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert!(!names.contains(&"cw_pool_config"), "a type: {names:?}");
        let plain = read("crates/capi/include/cachewise.h");
        let names = functions(&plain);
        assert!(names.contains(&"cw_copy") && names.contains(&"cw_zero_hint"), "{names:?}");
        assert!(!names.contains(&"cw_reuse"), "a type: {names:?}");
        let twice = functions(&pool).into_iter().find(|name| names.contains(name));
        assert_eq!(twice, None, "both libraries in one program");
    }
}
