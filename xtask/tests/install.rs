//! `xtask install` into an empty directory, and programs of C and C++ that pkg-config and CMake link with it.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::path::Path;
use std::process::{Command, Output};

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn text(output: Output) -> String {
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn an_installed_library_is_found_and_works() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("root");
    let mut install = Command::new(env!("CARGO_BIN_EXE_xtask"));
    install.args(["install", "--prefix", "/opt/cw", "--libdir", "lib64", "--destdir"]).arg(&root);
    // The build of the tests: what it has built is not built again elsewhere.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let told = text(run(install.env("CARGO_TARGET_DIR", target)));
    let libraries = root.join("opt/cw/lib64");
    let versioned = concat!("libcachewise.so.", env!("CARGO_PKG_VERSION"));
    let names = "libcachewise.so.0.2 libcachewise.so libcachewise.a \
        libcachewise_preload.so libcachewise_preload.so.0.2 \
        libcachewise_preload_stats.so libcachewise_preload_stats.so.0.2 pkgconfig/cachewise.pc \
        glibc-hwcaps/x86-64-v4/libcachewise.so.0.2 glibc-hwcaps/x86-64-v4/libcachewise_preload.so \
        libcachewise_pool.so libcachewise_pool.so.0.2 \
        libcachewise_pool.a pkgconfig/cachewise_pool.pc ../include/cachewise_pool.h ../include/cachewise_pool.hpp \
        ../include/cachewise.h ../bin/cachewise ../share/man/man1/cachewise.1 \
        ../share/man/man1/cachewise-exec.1 ../lib/systemd/system/cachewise-scrubd.service \
        ../share/doc/cachewise/LICENSE-MIT ../share/zsh/site-functions/_cachewise";
    for name in names.split_whitespace() {
        assert!(libraries.join(name).exists(), "{name}: {told}");
    }
    let link = std::fs::read_link(libraries.join("libcachewise.so.0.2")).expect("a link");
    assert_eq!(link, Path::new(versioned));
    assert!(!told.contains(".new"), "{told}");

    let package = std::fs::read_to_string(libraries.join("pkgconfig/cachewise.pc")).expect("read");
    assert!(
        package.contains("prefix=${pcfiledir}/../..\n") && !package.contains("root"),
        "{package}"
    );

    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let example = clone.join("lib/capi/examples/log_ring.c");
    let program = directory.path().join("log_ring");
    found_by_pkg_config_and_cmake(directory.path(), &example, &libraries);

    // The static libraries stand alone, each and both together, and offer the interface alone.
    let rows = clone.join("memory/pool-capi/examples/row_cache.c");
    for (source, archives, last) in [
        (&example, &["libcachewise.a"] as &[&str], "bytes sent\n"),
        (&rows, &["libcachewise_pool.a"], "rows were zero\n"),
        (&example, &["libcachewise.a", "libcachewise_pool.a"], "bytes sent\n"),
    ] {
        let mut compile = Command::new("cc");
        compile.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
        compile.arg("-I").arg(root.join("opt/cw/include")).arg("-Wl,--whole-archive");
        compile.args(archives.iter().map(|archive| libraries.join(archive)));
        run(compile.args(["-Wl,--no-whole-archive", "-lm"]));
        let ran = text(run(&mut Command::new(&program)));
        assert!(ran.ends_with(last), "{archives:?}: {ran}");
    }
    beside_another_rust_library(directory.path(), &root.join("opt/cw/include"), &libraries);
    for archive in ["libcachewise.a", "libcachewise_pool.a"] {
        let archive = libraries.join(archive);
        let symbols = Command::new("nm").args(["-g", "--defined-only"]).arg(&archive).output();
        let Ok(symbols) = symbols.map(text) else { continue };
        let names = symbols.lines().filter_map(|line| line.split_whitespace().nth(2));
        let others: Vec<_> = names.filter(|name| !name.starts_with("cw_")).collect();
        assert!(others.is_empty(), "{}: {others:?}", archive.display());
    }
}

/// A program in C and in C++ that uses both libraries, and another one if it is told to.
const BOTH: &str = "#include <cachewise.h>\n#include <cachewise_pool.h>\n#include <stddef.h>
#ifdef __cplusplus\n#include <cachewise_pool.hpp>\n#include <vector>
static bool fits(cw_pool *pool) {
    cachewise::pool_resource large(pool);
    std::pmr::vector<char> table(1 << 20, 1, &large);
    return cw_pool_contains(pool, table.data());
}
#else\n#define fits(pool) 1\n#endif
#ifdef OTHER\nsize_t other(size_t n);\n#else\n#define other(n) 4\n#endif
int main(void) {
    char to[3000], from[3000] = \"both\";
    struct cw_pool_config config;
    cw_pool *pool;
    cw_copy(to, from, sizeof to);
    cw_pool_config_init(&config);
    config.capacity = 64 << 20;
    return to[0] != 'b' || other(1000) != 4 || cw_pool_create(&config, &pool) != CW_OK || !fits(pool)
        || cw_pool_free(pool, cw_pool_zalloc(pool, 2), 2) != CW_OK;
}";

/// Installed files are found: by pkg-config, shared and static, and by CMake, of the version that is asked for.
fn found_by_pkg_config_and_cmake(folder: &Path, example: &Path, libraries: &Path) {
    let project = folder.join("project");
    std::fs::create_dir(&project).expect("a directory");
    std::fs::copy(example, project.join("log_ring.c")).expect("copied");
    let program = project.join("program");
    for (compiler, name, source) in [
        ("cc", "log_ring.c", None),
        ("cc", "both.c", Some(BOTH)),
        ("c++", "classes.cpp", Some(BOTH)),
    ] {
        source.inspect(|text| std::fs::write(project.join(name), text).expect("written"));
        for (link, kind) in [(&[] as &[&str], "--libs"), (&["-static"], "--static")] {
            let mut flags = Command::new("pkg-config");
            flags.args(["--cflags", "--libs", kind, "cachewise", "cachewise_pool"]);
            let flags = text(run(flags.env("PKG_CONFIG_PATH", libraries.join("pkgconfig"))));
            let mut compile = Command::new(compiler);
            compile.args(["-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).args(link);
            run(compile.arg(project.join(name)).args(flags.split_whitespace()));
            let ran = text(run(Command::new(&program).env("LD_LIBRARY_PATH", libraries)));
            assert!(source.is_some() || ran.ends_with("bytes sent\n"), "{ran}");
        }
    }
    // The page's lines, and programs that use both.
    let page = include_str!("../../docs/c-library.md");
    let (_, lines) = page.split_once("```cmake\n").expect("CMake's lines");
    let lines = lines.split_once("```").expect("their end").0;
    let list = format!(
        "cmake_minimum_required(VERSION 3.13)\nproject(linked C CXX)\nset(CMAKE_CXX_STANDARD 17)
        find_package(cachewise ${{WANTED}} REQUIRED)\nadd_executable(log_ring log_ring.c)\n{lines}
        add_executable(both both.c)\nadd_executable(classes classes.cpp)
        foreach(one both classes)
        target_link_libraries(${{one}} cachewise::cachewise cachewise::pool)\nendforeach()\n"
    );
    std::fs::write(project.join("CMakeLists.txt"), list).expect("written");
    // Before 1.0 a minor version is another interface.
    let wanted = [("0.1", false), ("0.3", false), ("1", false), ("0.2.1;EXACT", false)];
    for (version, fits) in
        wanted.into_iter().chain(["0.2", "0.2.0;EXACT", ""].map(|fit| (fit, true)))
    {
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(&project).arg("-B").arg(&project);
        // Debian's CMake looks in no folder lib64.
        configure.arg(format!("-Dcachewise_DIR={}", libraries.join("cmake/cachewise").display()));
        let output = configure.arg(format!("-DWANTED={version}")).output().expect("cmake");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), fits, "{version}: {told}");
        assert_eq!(told.contains("cachewise-config.cmake, version: 0.2.0"), !fits, "{told}");
    }
    run(Command::new("cmake").arg("--build").arg(&project));
    for name in ["log_ring", "both", "classes"] {
        let ran = text(run(&mut Command::new(project.join(name))));
        assert!(name != "log_ring" || ran.ends_with("bytes sent\n"), "{ran}");
    }
}

/// A program may have another static library made by Rust, before or behind these: each brings the standard library.
fn beside_another_rust_library(folder: &Path, include: &Path, libraries: &Path) {
    const OTHER: &str = "#[unsafe(no_mangle)] pub extern \"C\" fn other(n: usize) -> usize {
        std::thread::spawn(move || n.to_string().to_uppercase().len()).join().unwrap_or(0) }";
    let [source, main, program] = ["other.rs", "both.c", "both"].map(|name| folder.join(name));
    std::fs::write(&source, OTHER).expect("written");
    std::fs::write(&main, BOTH).expect("written");
    let other = folder.join("libother.a");
    let mut compile = Command::new("rustc");
    compile.args(["-O", "--edition", "2024", "--crate-type", "staticlib", "-o"]);
    run(compile.arg(&other).arg(&source));
    let [copy, pool] = ["libcachewise.a", "libcachewise_pool.a"].map(|name| libraries.join(name));
    for archives in [[&other, &copy, &pool], [&copy, &pool, &other], [&pool, &other, &copy]] {
        for flags in [&[] as &[&str], &["-static"], &["-flto"]] {
            let mut link = Command::new("cc");
            link.args(["-O2", "-DOTHER"]).args(flags).arg("-I").arg(include).arg("-o");
            run(link.arg(&program).arg(&main).args(archives).args(["-lpthread", "-ldl", "-lm"]));
            run(&mut Command::new(&program));
        }
    }
}

/// Maps of memory of a program under `exec`, and its messages, with the user's directory here.
fn executed(command: &Path, home: &Path, options: &[&str]) -> (String, String) {
    let mut exec = Command::new(command);
    exec.arg("exec").args(options).args(["--", "/bin/cat", "/proc/self/maps"]);
    exec.env("HOME", home);
    for name in ["XDG_DATA_HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "CACHEWISE_LIBRARY"] {
        exec.env_remove(name);
    }
    let output = run(&mut exec);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (text(output), told)
}

/// `cargo install` installs programs and nothing else: the command carries what `exec` preloads.
#[test]
fn a_command_that_cargo_installed_runs_programs_on_the_library() {
    let directory = tempfile::tempdir().expect("a directory");
    let (root, home) = (directory.path().join("root"), directory.path().join("home"));
    std::fs::create_dir(&home).expect("a directory");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let mut install = Command::new(env!("CARGO"));
    // As the README says.
    let readme = include_str!("../../README.md");
    let line = readme.lines().find(|line| line.starts_with("cargo install")).expect("the line");
    let words = line.split("  #").next().unwrap_or(line).split_whitespace().skip(1);
    install.args(words).args(["--locked", "--root"]).arg(&root);
    install.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    run(install.env("CARGO_TARGET_DIR", target));
    let command = root.join("bin/cachewise");
    assert_eq!(std::fs::read_dir(root.join("bin")).expect("read").count(), 1);

    let (maps, told) = executed(&command, &home, &[]);
    let place = home.join(".local/share/cachewise/lib").display().to_string();
    assert!(maps.contains(&place) && maps.contains("libcachewise_preload.so"), "{maps}");
    assert_eq!(told, "");

    // Without a place for it, that is what it says.
    let mut homeless = Command::new(&command);
    homeless.args(["exec", "--", "/bin/true"]).env_clear();
    let output = homeless.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("neither XDG_DATA_HOME nor HOME"), "{told}");
}

#[test]
fn a_relative_prefix_is_refused() {
    let mut install = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = install.args(["install", "--prefix", "here"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("--prefix: expected an absolute path, found here"), "{told}");
}

/// The README's line for `Cargo.toml`, with the README's program.
#[test]
fn a_rust_program_names_the_library_as_the_readme_says() {
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the clone");
    let readme = std::fs::read_to_string(clone.join("README.md")).expect("the README");
    let (_, program) = readme.split_once("```rust\n").expect("a program");
    let program = program.split_once("```").expect("its end").0;
    let (first, program) = program.split_once('\n').expect("lines");
    let dependency = first.strip_prefix("// Cargo.toml: ").expect("what Cargo is told");
    let directory = tempfile::tempdir().expect("a directory");
    let project = directory.path().join("project");
    std::fs::create_dir_all(project.join("src")).expect("a directory");
    std::os::unix::fs::symlink(&clone, directory.path().join("cachewise")).expect("a link");
    let package = "[package]\nname = \"uses\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n";
    std::fs::write(
        project.join("Cargo.toml"),
        format!("{package}[dependencies]\n{dependency}\n\n[workspace]\n"),
    )
    .expect("written");
    let (uses, body) = program.split_once("\n\n").expect("a use, and statements");
    std::fs::write(project.join("src/main.rs"), format!("{uses}\nfn main() {{\n{body}}}\n"))
        .expect("written");
    std::fs::copy(clone.join("Cargo.lock"), project.join("Cargo.lock")).expect("copied");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    let mut cargo = Command::new(env!("CARGO"));
    run(cargo
        .args(["run", "--quiet", "--offline"])
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", target));
}
