//! `xtask install`: the command with its manual, the C libraries with headers and pkg-config files, and
//! the preload libraries, built for release and put where a system expects them.

use crate::command::{self, cargo, files_in, printed, root, text};
use crate::emulate_arch::{Target, tool};
use anyhow::{Context as _, Result, bail, ensure};
use fs_err::{self as fs, os::unix::fs::symlink};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Options: the folders to install into.
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
    /// Remove what was installed there
    #[arg(long)]
    uninstall: bool,
}

impl Install {
    /// A tree for packagers.
    pub(crate) fn staged_in(prefix: &str, libdir: &str, destdir: &Path) -> Install {
        let destdir = Some(destdir.to_owned());
        Install { prefix: prefix.into(), libdir: libdir.into(), destdir, uninstall: false }
    }

    /// Path at which a file of the tree is staged.
    fn staged(&self, path: &Path) -> PathBuf {
        match &self.destdir {
            // An absolute path joined would replace the directory.
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_path_buf(),
        }
    }

    /// Path at which a staged file will be used.
    fn used(&self, staged: &Path) -> String {
        let inside = self.destdir.as_ref().and_then(|root| staged.strip_prefix(root).ok());
        inside.map_or_else(|| staged.display().to_string(), |path| format!("/{}", path.display()))
    }

    /// The list of what was installed.
    fn list(&self) -> PathBuf {
        self.staged(&self.prefix.join("share/cachewise/installed"))
    }
}

/// Paths of the files installed so far.
static PLACED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Pattern of exported symbols, for the static library, which has no list of its own.
const EXPORTED: &str = "cw_*";

/// Builds and installs.
pub fn run(args: &Install) -> Result<()> {
    let prefix = &args.prefix;
    let found = prefix.display();
    ensure!(prefix.is_absolute(), "--prefix: found {found}, accepted an absolute path");
    if args.uninstall {
        return removed(args);
    }
    placed(args, &all_built()?, None)?;
    let list = args.list();
    fs::create_dir_all(list.parent().context("a folder")?)?;
    // Taken out: the list is put there by what notes files, too.
    let placed = std::mem::take(&mut *PLACED.lock().unwrap_or_else(PoisonError::into_inner));
    let lines: String = placed.iter().map(|path| args.used(path) + "\n").collect();
    put(&list, |new| fs::write(new, lines.as_bytes()))
}

/// Removes what the list names, then the list.
fn removed(args: &Install) -> Result<()> {
    let list = args.list();
    let named = fs::read_to_string(&list).context("nothing is known to be installed there")?;
    let files = named.lines().map(|line| args.staged(Path::new(line)));
    for file in files.chain([list]) {
        let file = file.as_path();
        match fs::remove_file(file) {
            Ok(()) => println!("{}", file.display()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        // Folders that only this library uses.
        if let Some(own) = file.parent().filter(|folder| folder.ends_with("cachewise")) {
            let _ = fs::remove_dir(own);
        }
    }
    Ok(())
}

/// Packages that installed files are built from. Each is built by itself, so that none has another's features.
pub(crate) const PACKAGES: [&str; 5] = [
    "cachewise-cli",
    "cachewise-pool-capi",
    "cachewise-preload-stats",
    "cachewise-capi",
    "cachewise-preload",
];

/// Puts what was built in that directory, for this architecture or another, where it belongs.
pub(crate) fn placed(args: &Install, release: &Path, across: Option<&Target>) -> Result<()> {
    let prefix = &args.prefix;
    let libdir = prefix.join(&args.libdir);
    let staged = |path: &Path| args.staged(path);
    let (libraries, headers) = (staged(&libdir), staged(&prefix.join("include")));
    let (programs, manual) = (staged(&prefix.join("bin")), staged(&prefix.join("share/man/man1")));
    let (pkgconfig, cmake) = (libraries.join("pkgconfig"), libraries.join("cmake/cachewise"));
    for directory in [&libraries, &headers, &pkgconfig, &cmake, &programs, &manual] {
        fs::create_dir_all(directory)?;
    }
    let version = env!("CARGO_PKG_VERSION");
    // As the libraries' build scripts have it.
    let interface = first_compatible();

    for (built, stem) in [
        ("libcachewise_c.so", "libcachewise.so"),
        ("libcachewise_preload.so", "libcachewise_preload.so"),
        ("libcachewise_preload_stats.so", "libcachewise_preload_stats.so"),
        ("libcachewise_pool_c.so", "libcachewise_pool.so"),
    ] {
        let real = format!("{stem}.{version}");
        place_stripped(&release.join(built), &libraries.join(&real), across)?;
        for name in [&format!("{stem}.{interface}"), stem] {
            put(&libraries.join(name), |new| symlink(&real, new))?;
        }
    }
    let copies = "Copy, zero and compare memory the way this machine's measured profile says";
    for (package, built, name, about) in [
        ("lib/capi", "libcachewise_c.a", "cachewise", copies),
        (
            "memory/pool-capi",
            "libcachewise_pool_c.a",
            "cachewise_pool",
            "A pool of prezeroed pages",
        ),
    ] {
        let file = format!("{name}.h");
        let header = root().join(package).join("include").join(&file);
        let one_object = static_library(&release.join(built), &header, name, across)?;
        place(&one_object, &libraries.join(format!("lib{name}.a")), 0o644)?;
        place(&header, &headers.join(&file), 0o644)?;
        let classes = header.with_extension("hpp");
        if classes.exists() {
            place(&classes, &headers.join(format!("{name}.hpp")), 0o644)?;
        }
        let text = package_file(name, about, prefix, &libdir);
        put(&pkgconfig.join(format!("{name}.pc")), |new| fs::write(new, &text))?;
    }
    let units = staged(&prefix.join("lib/systemd/system"));
    fs::create_dir_all(&units)?;
    for unit in ["cachewise-tune.service", "cachewise-scrubd.service", "cachewise-scrubd.socket"] {
        let text = fs::read_to_string(root().join("packaging").join(unit))?;
        let text = text.replace("/usr/local/bin", &prefix.join("bin").to_string_lossy());
        put(&units.join(unit), |new| fs::write(new, &text))?;
    }
    let program = release.join("cachewise");
    place_stripped(&program, &programs.join("cachewise"), across)?;
    let pages = release.join("man");
    let cachewise = || match across {
        Some(target) => target.emulated(&[], &program),
        None => Command::new(&program),
    };
    command::run(cachewise().args(["man", "--to"]).arg(&pages))?;
    for page in files_in(&pages, "", "")? {
        place(&page, &manual.join(page.file_name().context("a page's name")?), 0o644)?;
    }
    let licences = staged(&prefix.join("share/doc/cachewise"));
    fs::create_dir_all(&licences)?;
    for file in files_in(root(), "LICENSE-", "")? {
        place(&file, &licences.join(file.file_name().context("a licence's name")?), 0o644)?;
    }
    for (name, text) in cmake_files(prefix, &libdir) {
        put(&cmake.join(name), |new| fs::write(new, &text))?;
    }
    for (shell, file) in [
        ("bash", "share/bash-completion/completions/cachewise"),
        ("zsh", "share/zsh/site-functions/_cachewise"),
        ("fish", "share/fish/vendor_completions.d/cachewise.fish"),
    ] {
        let file = staged(&prefix.join(file));
        fs::create_dir_all(file.parent().context("a folder")?)?;
        let text = printed(cachewise().args(["completions", shell]))?;
        put(&file, |new| fs::write(new, &text))?;
    }
    Ok(())
}

/// Files for `find_package(cachewise)`: the targets `cachewise::cachewise` and `cachewise::pool`. Files are found
/// from its own folder, wherever a tree was unpacked, and where `/lib` is a link to `/usr/lib`.
fn cmake_files(prefix: &Path, libdir: &Path) -> [(&'static str, String); 2] {
    let version = env!("CARGO_PKG_VERSION");
    let include = match libdir.strip_prefix(prefix) {
        Ok(inside) => {
            format!("${{_cachewise}}/../..{}/include", "/..".repeat(inside.components().count()))
        }
        Err(_) => prefix.join("include").display().to_string(),
    };
    let place = "get_filename_component(_cachewise \"${CMAKE_CURRENT_LIST_DIR}\" REALPATH)\n";
    // A compiler leaves out one of its own folders, but not where it has dots.
    let include = format!("get_filename_component(_cachewise_include \"{include}\" ABSOLUTE)\n");
    let target = |name: &str, library: &str| {
        format!(
            "if(NOT TARGET cachewise::{name})\n  add_library(cachewise::{name} SHARED IMPORTED)\n  \
             set_target_properties(cachewise::{name} PROPERTIES\n    \
             IMPORTED_LOCATION \"${{_cachewise}}/../../lib{library}.so\"\n    \
             INTERFACE_INCLUDE_DIRECTORIES \"${{_cachewise_include}}\")\nendif()\n"
        )
    };
    let targets = target("cachewise", "cachewise") + &target("pool", "cachewise_pool");
    let config = format!("{place}{include}{targets}unset(_cachewise)\nunset(_cachewise_include)\n");
    let first = first_compatible();
    let compatible = format!(
        "set(PACKAGE_VERSION \"{version}\")\nset(PACKAGE_VERSION_COMPATIBLE FALSE)\n\
         if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n  set(PACKAGE_VERSION_EXACT TRUE)\nendif()\n\
         if(NOT PACKAGE_FIND_VERSION VERSION_LESS \"{first}\" AND\n   \
         NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n"
    );
    [("cachewise-config.cmake", config), ("cachewise-config-version.cmake", compatible)]
}

/// The first version with this interface: before 1.0 a minor version may change it.
fn first_compatible() -> &'static str {
    match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    }
}

/// Builds everything that is installed; the directory it is in.
pub(crate) fn all_built() -> Result<PathBuf> {
    PACKAGES.iter().try_for_each(|package| built(package).map(drop))?;
    release()
}

/// Builds a package for release.
pub(crate) fn built(package: &str) -> Result<PathBuf> {
    command::run(cargo("build --release -p").arg(package).current_dir(root()))?;
    release()
}

/// The directory of what is built for release.
fn release() -> Result<PathBuf> {
    let mut metadata = cargo("metadata --format-version 1 --no-deps");
    let metadata = printed(metadata.current_dir(root()))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"].as_str().context("cargo metadata: no target")?;
    Ok(Path::new(target).join("release"))
}

/// The functions that a header declares: what begins as they do and is called.
fn functions(header: &str) -> BTreeSet<&str> {
    header
        .split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter_map(|word| word.strip_suffix('('))
        .filter(|word| word.starts_with("cw_"))
        .collect()
}

/// The static library as one object that offers [`EXPORTED`] alone, so that nothing of Rust's meets
/// another Rust library in a program. Without binutils it is installed as it was built.
fn static_library(
    built: &Path,
    header: &Path,
    name: &str,
    across: Option<&Target>,
) -> Result<PathBuf> {
    let scratch = built.parent().context("a folder")?;
    let object = scratch.join(format!("{name}-static.o"));
    let archive = scratch.join(format!("lib{name}-static.a"));
    let header = fs::read_to_string(header)?;
    let mut partial = tool(across, "ld");
    partial
        .args(["-r", "--gc-sections", "-o"])
        .arg(&object)
        .args(functions(&header).into_iter().flat_map(|name| ["-u", name]));
    partial.arg(built);
    let mut hide = tool(across, "objcopy");
    hide.args(["--wildcard", "--strip-debug", "--keep-global-symbol"]);
    // The compiler's own form of core, which several objects joined are not any more.
    hide.args([EXPORTED, "--remove-section", ".llvmbc", "--remove-section", ".llvmcmd"]);
    hide.arg(&object);
    let mut pack = tool(across, "ar");
    pack.arg("rcsD").arg(&archive).arg(&object);
    let _ = fs::remove_file(&archive);
    for command in [&mut partial, &mut hide, &mut pack] {
        match command.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => bail!("{command:?}: {}", text(&output.stderr).trim()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
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

/// Text of the file for `pkg-config`, which finds the tree from that file, wherever it was unpacked. Before 2.34 glibc's
/// parts are libraries of their own, which a static program names.
fn package_file(name: &str, about: &str, prefix: &Path, libdir: &Path) -> String {
    let (prefix, libdir) = match libdir.strip_prefix(prefix) {
        Ok(inside) => {
            let up = "/..".repeat(inside.components().count());
            (PathBuf::from(format!("${{pcfiledir}}/..{up}")), Path::new("${prefix}").join(inside))
        }
        Err(_) => (prefix.to_owned(), libdir.to_owned()),
    };
    format!(
        "prefix={}\nlibdir={}\nincludedir=${{prefix}}/include\n\nName: {name}\nDescription: {about}\n\
         Version: {}\nLibs: -L${{libdir}} -l{name}\nLibs.private: -lpthread -ldl -lm\nCflags: -I${{includedir}}\n",
        prefix.display(),
        libdir.display(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Copies a file to where it is installed.
fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    put(to, |new| {
        fs::copy(from, new)?;
        fs::set_permissions(new, std::fs::Permissions::from_mode(mode))
    })
}

/// Copies a program or library to where it is installed, without what only a debugger reads where `strip` is there.
fn place_stripped(from: &Path, to: &Path, across: Option<&Target>) -> Result<()> {
    put(to, |new| {
        fs::copy(from, new)?;
        fs::set_permissions(new, std::fs::Permissions::from_mode(0o755))?;
        match tool(across, "strip").arg("--strip-unneeded").arg(new).output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(std::io::Error::other(text(&output.stderr).trim().to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    })
}

/// Makes it under another name and moves it into place: no program ever sees half a library, and one
/// that runs keeps the old.
fn put(to: &Path, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let mut new = to.as_os_str().to_owned();
    new.push(".new");
    let _ = fs::remove_file(&new);
    make(Path::new(&new))?;
    fs::rename(&new, to)?;
    println!("{}", to.display());
    PLACED.lock().unwrap_or_else(PoisonError::into_inner).push(to.to_path_buf());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_installed_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let prefix = folder.path().to_path_buf();
        let args = Install { prefix, libdir: "lib".into(), destdir: None, uninstall: true };
        assert!(run(&args).is_err(), "nothing was installed");
        let [ours, gone, theirs] =
            ["bin/ours", "bin/gone", "bin/theirs"].map(|file| folder.path().join(file));
        for file in [&ours, &theirs, &args.list()] {
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            fs::write(file, format!("{}\n{}\n", ours.display(), gone.display())).expect("written");
        }
        run(&args).expect("removed");
        assert!(!ours.exists() && theirs.exists());
        assert!(!args.list().exists() && !folder.path().join("share/cachewise").exists());
    }

    #[test]
    fn what_a_header_declares_is_kept_in_the_static_library() {
        let read = |file: &str| fs::read_to_string(root().join(file)).expect("a header");
        let pool = read("memory/pool-capi/include/cachewise_pool.h");
        let names = functions(&pool);
        for name in ["cw_pool_create", "cw_pool_zalloc", "cw_pool_destroy"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert!(!names.contains(&"cw_pool_config"), "a type: {names:?}");
        let plain = read("lib/capi/include/cachewise.h");
        let names = functions(&plain);
        assert!(names.contains(&"cw_copy") && names.contains(&"cw_zero_hint"), "{names:?}");
        assert!(!names.contains(&"cw_reuse"), "a type: {names:?}");
        assert!(functions(&pool).is_disjoint(&names), "both libraries in one program");
    }
}
