//! `xtask install`: the command with its manual, the C libraries with headers and pkg-config files, and
//! the preload libraries, built for release and put where a system expects them.

use crate::command::{self, cargo, printed, root, text};
use anyhow::{Context as _, Result, bail, ensure};
use fs_err::{self as fs, os::unix::fs::symlink};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Content of an installed file.
enum Content {
    /// A copy of a program or a shared library, without what only a debugger reads.
    Program(PathBuf),
    File(PathBuf),
    Text(String),
    Link(String),
}

/// Packages that installed files are built from. Each is built by itself, so that none has another's features.
pub(crate) const PACKAGES: [&str; 5] = [
    "cachewise-cli",
    "cachewise-pool-capi",
    "cachewise-preload-stats",
    "cachewise-capi",
    "cachewise-preload",
];

/// Shared libraries: name of Cargo's file, name of the installed one.
const SHARED: [(&str, &str); 4] = [
    ("libcachewise_c.so", "libcachewise.so"),
    ("libcachewise_preload.so", "libcachewise_preload.so"),
    ("libcachewise_preload_stats.so", "libcachewise_preload_stats.so"),
    ("libcachewise_pool_c.so", "libcachewise_pool.so"),
];

/// CPUs that the C library and the preload library are built for as well, the first two of [`SHARED`]: the dynamic linker
/// takes them from this folder of `glibc-hwcaps` where it has one (ld.so(8)).
const LEVEL: &str = "x86-64-v4";

/// C interfaces: folder of the headers, Cargo's static library, name of the installed one, description.
const INTERFACES: [(&str, &str, &str, &str); 2] = [
    (
        "lib/capi/include",
        "libcachewise_c.a",
        "cachewise",
        "Copy, zero and compare memory the way this machine's measured profile says",
    ),
    (
        "memory/pool-capi/include",
        "libcachewise_pool_c.a",
        "cachewise_pool",
        "A pool of prezeroed pages",
    ),
];

const UNITS: [&str; 3] =
    ["cachewise-tune.service", "cachewise-scrubd.service", "cachewise-scrubd.socket"];

/// Completions: the shell, the place of its file in the tree.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/cachewise"),
    ("zsh", "share/zsh/site-functions/_cachewise"),
    ("fish", "share/fish/vendor_completions.d/cachewise.fish"),
];

/// Pattern of exported symbols, for the static library, which has no list of its own.
const EXPORTED: &str = "cw_*";

/// Builds and installs, or removes.
pub fn run(args: &Install) -> Result<()> {
    let found = args.prefix.display();
    ensure!(args.prefix.is_absolute(), "--prefix: expected an absolute path, found {found}");
    let destdir = args.destdir.as_deref();
    let list = staged(destdir, &args.prefix.join("share/cachewise/installed"));
    if args.uninstall {
        return removed(destdir, &list);
    }
    let placed = placed(&args.prefix, &args.libdir, destdir, &all_built()?)?;
    let lines: String = placed.iter().map(|path| format!("{}\n", path.display())).collect();
    put(&list, &Content::Text(lines))
}

/// Path at which a file of the tree is staged.
fn staged(destdir: Option<&Path>, path: &Path) -> PathBuf {
    // An absolute path joined would replace the directory.
    destdir
        .map_or_else(|| path.to_owned(), |root| root.join(path.strip_prefix("/").unwrap_or(path)))
}

/// Removes what the list names, then the list.
fn removed(destdir: Option<&Path>, list: &Path) -> Result<()> {
    let named = fs::read_to_string(list).context("nothing is known to be installed there")?;
    let files = named.lines().map(|line| staged(destdir, Path::new(line)));
    for file in files.chain([list.to_owned()]) {
        match fs::remove_file(&file) {
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

/// Puts what was built in `release` where it belongs; the paths in the order of the list.
pub(crate) fn placed(
    prefix: &Path,
    libdir: &Path,
    destdir: Option<&Path>,
    release: &Path,
) -> Result<Vec<PathBuf>> {
    let libdir = prefix.join(libdir);
    let mut paths = Vec::new();
    for (path, content) in files(prefix, &libdir, release)? {
        put(&staged(destdir, &path), &content)?;
        paths.push(path);
    }
    Ok(paths)
}

/// All that is installed: place and content.
fn files(prefix: &Path, libdir: &Path, release: &Path) -> Result<Vec<(PathBuf, Content)>> {
    let mut files = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    let mut shared = |folder: &Path, release: &Path, (built, name): (&str, &str)| {
        let real = format!("{name}.{version}");
        files.push((folder.join(&real), Content::Program(release.join(built))));
        // As the libraries' build scripts have it.
        for link in [format!("{name}.{}", first_compatible()), name.to_owned()] {
            files.push((folder.join(link), Content::Link(real.clone())));
        }
    };
    SHARED.into_iter().for_each(|library| shared(libdir, release, library));
    let (folder, built) = (libdir.join("glibc-hwcaps").join(LEVEL), release.join(LEVEL));
    SHARED[..2].iter().for_each(|library| shared(&folder, &built, *library));
    for (folder, built, name, about) in INTERFACES {
        let header = root().join(folder).join(format!("{name}.h"));
        let archive = static_library(&release.join(built), &header, name)?;
        files.push((libdir.join(format!("lib{name}.a")), Content::File(archive)));
        let classes = header.with_extension("hpp");
        for header in [header, classes].into_iter().filter(|header| header.exists()) {
            let place = prefix.join("include").join(header.file_name().context("a name")?);
            files.push((place, Content::File(header)));
        }
        let text = package_file(name, about, prefix, libdir);
        files.push((libdir.join(format!("pkgconfig/{name}.pc")), Content::Text(text)));
    }
    for (name, text) in cmake_files(prefix, libdir) {
        files.push((libdir.join("cmake/cachewise").join(name), Content::Text(text)));
    }
    for unit in UNITS {
        let text = fs::read_to_string(root().join("packaging").join(unit))?;
        let text = text.replace("/usr/local/bin", &prefix.join("bin").to_string_lossy());
        files.push((prefix.join("lib/systemd/system").join(unit), Content::Text(text)));
    }
    let program = release.join("cachewise");
    for (name, text) in manual(&program)? {
        files.push((prefix.join("share/man/man1").join(name), Content::Text(text)));
    }
    for (shell, place) in SHELLS {
        let text = printed(Command::new(&program).args(["completions", shell]))?;
        files.push((prefix.join(place), Content::Text(text)));
    }
    files.push((prefix.join("bin/cachewise"), Content::Program(program)));
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let place = prefix.join("share/doc/cachewise").join(licence);
        files.push((place, Content::File(root().join(licence))));
    }
    Ok(files)
}

/// Manual pages, by file: the text of `--help`, of the command and of each verb.
fn manual(program: &Path) -> Result<Vec<(String, String)>> {
    let help = |words: &[&str]| printed(Command::new(program).args(words).arg("--help"));
    let whole = help(&[])?;
    let verbs = whole.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty());
    // A description that goes on in the next line is indented further.
    let verbs = verbs.filter_map(|line| {
        line.strip_prefix("  ")?.split(' ').next().filter(|word| !word.is_empty())
    });
    let mut pages = vec![page("cachewise", &whole)];
    for verb in verbs.filter(|verb| *verb != "help") {
        pages.push(page(&format!("cachewise-{verb}"), &help(&[verb])?));
    }
    Ok(pages)
}

/// A page with the text of `--help` as it is, under the headings that `man` and `apropos` look for.
fn page(name: &str, help: &str) -> (String, String) {
    let escaped = help.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped.lines().map(|line| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}\n"),
        false => format!("{line}\n"),
    });
    let about = escaped.lines().next().unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        ".TH {} 1 \"\" \"cachewise {version}\"\n.SH NAME\n{} \\- {about}\n.SH DESCRIPTION\n.nf\n{}.fi\n",
        name.to_uppercase(),
        name.replace('-', "\\-"),
        lines.collect::<String>()
    );
    (format!("{name}.1"), text)
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
    let release = release()?;
    level_builds(&release, |package, level, folder| {
        let mut build = cargo("build --release -p");
        build.arg(package).arg("--target-dir").arg(folder).current_dir(root());
        command::run(build.env("RUSTFLAGS", format!("-C target-cpu={level}")))?;
        Ok(folder.join("release"))
    })?;
    Ok(release)
}

/// Has both libraries built for [`LEVEL`], by package, level and target folder, and puts them into the level's folder.
pub(crate) fn level_builds(
    release: &Path,
    mut build: impl FnMut(&str, &str, &Path) -> Result<PathBuf>,
) -> Result<()> {
    let folder = release.join(LEVEL);
    for (package, (file, _)) in ["cachewise-capi", "cachewise-preload"].iter().zip(SHARED) {
        let built = build(package, LEVEL, &folder)?;
        fs::copy(built.join(file), folder.join(file))?;
    }
    Ok(())
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
fn static_library(built: &Path, header: &Path, name: &str) -> Result<PathBuf> {
    let scratch = built.parent().context("a folder")?;
    let object = scratch.join(format!("{name}-static.o"));
    let archive = scratch.join(format!("lib{name}-static.a"));
    let header = fs::read_to_string(header)?;
    let mut partial = Command::new("ld");
    partial
        // Groups become plain sections: of a group that another Rust library has too the linker keeps one, and what
        // refers to the other, whose name is hidden here, would be an error.
        .args(["-r", "--gc-sections", "--force-group-allocation", "-o"])
        .arg(&object)
        .args(functions(&header).into_iter().flat_map(|name| ["-u", name]));
    partial.arg(built);
    // Weak functions of a newer C library that nothing here calls: the next step would make them needed, also by the
    // other library.
    let mut strip = Command::new("objcopy");
    strip.arg("--strip-unneeded").arg(&object);
    let mut hide = Command::new("objcopy");
    hide.args(["--wildcard", "--keep-global-symbol"]);
    // The compiler's own form of core, which several objects joined are not any more.
    hide.args([EXPORTED, "--remove-section", ".llvmbc", "--remove-section", ".llvmcmd"]);
    hide.arg(&object);
    let mut pack = Command::new("ar");
    pack.arg("rcsD").arg(&archive).arg(&object);
    let _ = fs::remove_file(&archive);
    for command in [&mut partial, &mut strip, &mut hide, &mut pack] {
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

/// Makes the file under another name and moves it into place: no program ever sees half a library, and one
/// that runs keeps the old.
fn put(to: &Path, content: &Content) -> Result<()> {
    fs::create_dir_all(to.parent().context("a folder")?)?;
    let mut new = to.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let _ = fs::remove_file(new);
    let mode = if matches!(content, Content::Program(_)) { 0o755 } else { 0o644 };
    match content {
        Content::Program(from) | Content::File(from) => {
            fs::copy(from, new)?;
        }
        Content::Text(text) => fs::write(new, text)?,
        Content::Link(target) => symlink(target, new)?,
    }
    if !matches!(content, Content::Link(_)) {
        fs::set_permissions(new, std::fs::Permissions::from_mode(mode))?;
    }
    if matches!(content, Content::Program(_)) {
        match Command::new("strip").arg("--strip-unneeded").arg(new).output() {
            Ok(output) if !output.status.success() => bail!("{}", text(&output.stderr).trim()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    fs::rename(new, to)?;
    println!("{}", to.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_installed_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let prefix = folder.path().to_path_buf();
        let list = prefix.join("share/cachewise/installed");
        let args = Install { prefix, libdir: "lib".into(), destdir: None, uninstall: true };
        assert!(run(&args).is_err(), "nothing was installed");
        let [ours, gone, theirs] =
            ["bin/ours", "bin/gone", "bin/theirs"].map(|file| folder.path().join(file));
        for file in [&ours, &theirs, &list] {
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            fs::write(file, format!("{}\n{}\n", ours.display(), gone.display())).expect("written");
        }
        run(&args).expect("removed");
        assert!(!ours.exists() && theirs.exists());
        assert!(!list.exists() && !folder.path().join("share/cachewise").exists());
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
