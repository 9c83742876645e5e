//! The header and the code agree: every function that is exported is declared and the other way
//! round; versions and constants are the same.

use crate::support::{
    Linked, compile, libraries, output, package, run, the_header_compiles_alone,
    the_interface_is_kept,
};
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeSet;
use std::process::Command;

const SONAME: &str = "libcachewise.so.0.2";

fn header() -> String {
    std::fs::read_to_string(package().join("include/cachewise.h")).expect("the header")
}

/// The names of the functions that the C compiler sees.
fn declarations() -> BTreeSet<String> {
    let mut command = Command::new("cc");
    command.args(["-E", "-P"]).arg(package().join("include/cachewise.h"));
    let text = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    let heads = text.split(';').filter_map(|part| Some(part.split_once('(')?.0));
    heads.filter_map(|head| Some(head[head.find("cw_")?..].trim().to_owned())).collect()
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn every_function_is_declared_exported_and_called() {
    let declared = declarations();
    let bytes = std::fs::read(libraries().join("libcachewise.so")).expect("the library");
    let file = object::File::parse(&*bytes).expect("an object file");
    let exported = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    let exported: BTreeSet<_> = exported
        .map(|symbol| String::from_utf8_lossy(symbol.name_bytes().expect("a name")).into_owned())
        .collect();
    assert_eq!(exported, declared);
    assert_eq!(exported, listed(SONAME));
    // With values by which wrong arguments are seen: `the_contract_is_kept`.
    let calls = std::fs::read_to_string(package().join("tests/c/contract.c")).expect("calls");
    let is_called = |name: &&String| calls.contains(&format!("{name}("));
    assert_eq!(exported.iter().find(|name| !is_called(name)), None);
}

/// Symbols of a library in `packaging/symbols`; the list itself is checked by the way.
fn listed(library: &str) -> BTreeSet<String> {
    let version = |text: &str| -> [u32; 3] {
        let parts: Vec<_> = text.split('.').map(|part| part.parse().expect(text)).collect();
        parts.try_into().expect("three numbers")
    };
    let here = version(env!("CARGO_PKG_VERSION"));
    let list = std::fs::read_to_string(package().join("../../packaging/symbols")).expect("a list");
    let lines = list.lines().skip_while(|line| !line.starts_with(&format!("{library} "))).skip(1);
    let mut there = BTreeSet::new();
    for line in lines.take_while(|line| line.starts_with([' ', '#'])) {
        let (left, symbol) = match line.strip_prefix("#MISSING: ") {
            Some(rest) => rest.split_once('#').map(|(left, symbol)| (Some(left), symbol)),
            None => Some((None, line)),
        }
        .expect(line);
        let (name, since) = symbol.trim_start().split_once("@Base ").expect(line);
        let since = version(since);
        assert!(since <= here, "{line}: of a version to come");
        match left.map(version) {
            None => assert!(there.insert(name.to_owned()), "{line}: twice"),
            Some([0, minor, _]) => assert!(since[0] == 0 && since[1] < minor, "{line}"),
            Some([major, ..]) => assert!(since[0] < major, "{line}"),
        }
    }
    there
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn it_needs_libc_alone() {
    let mut command = Command::new("readelf");
    let text = match command.args(["-d", "-W"]).arg(libraries().join("libcachewise.so")).output() {
        Ok(output) => String::from_utf8(output.stdout).expect("UTF-8"),
        Err(error) => {
            eprintln!("readelf: SKIPPED, {error}");
            return;
        }
    };
    let needed: Vec<_> = text.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert_eq!(needed.len(), 1, "{needed:?}");
    assert!(needed[0].contains("[libc.so.6]"), "{needed:?}");
    assert!(text.contains(&format!("soname: [{SONAME}]")), "{text}");
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_header_compiles_alone_in_every_dialect() {
    the_header_compiles_alone(
        "enum cw_reuse hint(void);\nenum cw_reuse hint(void) { return CW_REUSE_SOON; }\n",
    );
}

/// Constant sizes are no calls where the compiler optimises, and calls where it does not or is told so. In every dialect, and as
/// C++.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn constant_sizes_are_done_in_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = package().join("tests/c/constant.c");
    let undefined = |compiler: &str, flags: &[&str]| {
        let object = directory.path().join("constant.o");
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-c"]).args(flags);
        let include = package().join("include");
        run(command.arg("-I").arg(include).arg(&source).arg("-o").arg(&object));
        let bytes = std::fs::read(object).expect("the object");
        let file = object::File::parse(&*bytes).expect("an object file");
        let names = file.symbols().filter(|symbol| symbol.is_undefined());
        let names = names.map(|symbol| symbol.name().expect("a name").to_owned());
        names.filter(|name| !name.is_empty() && !name.starts_with('_')).collect::<BTreeSet<_>>()
    };
    let four = ["cw_copy", "cw_equal", "cw_fill", "cw_zero"].map(str::to_owned);
    for (compiler, dialects) in [
        ("cc", ["-std=c89", "-std=c99", "-std=gnu17"]),
        ("c++", ["-std=c++98", "-std=c++11", "-std=gnu++20"]),
    ] {
        for dialect in dialects {
            let language: &[&str] = if compiler == "cc" { &[] } else { &["-xc++"] };
            let with = |more: &[&str]| undefined(compiler, &[language, &[dialect], more].concat());
            for optimised in ["-O1", "-O2", "-Os"] {
                assert_eq!(with(&[optimised]), BTreeSet::new(), "{dialect} {optimised}");
            }
            assert_eq!(with(&["-O0"]), BTreeSet::from(four.clone()), "{dialect}");
            let told = with(&["-O2", "-DCW_NO_INLINE"]);
            assert_eq!(told, BTreeSet::from(four.clone()), "{dialect}");
        }
    }
    for flags in [["-DCALLS", "-O2"], ["-DCALLS", "-O0"]] {
        let program = compile(directory.path(), "tests/c/constant.c", &flags, Linked::Shared);
        assert_eq!(output(&program), "right\n", "{flags:?}");
    }
}

/// Every function: one that could throw keeps what calls it from being `noexcept` itself.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn in_cpp_every_function_is_noexcept() {
    let asserted = |name: &String| format!("static_assert(is_noexcept({name}), \"{name}\");\n");
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("all.cpp");
    // Since C++17 it is part of a function's type.
    let which = "template <class R, class... A> constexpr bool is_noexcept(R (*)(A...) noexcept) { return true; }\n\
        template <class R, class... A> constexpr bool is_noexcept(R (*)(A...)) { return false; }\n";
    let all: String = declarations().iter().map(asserted).collect();
    std::fs::write(&source, format!("#include <cachewise.h>\n{which}{all}")).expect("written");
    let mut command = Command::new("c++");
    command.args(["-std=c++17", "-Wall", "-Werror", "-fsyntax-only", "-I"]);
    run(command.arg(package().join("include")).arg(&source));
}

/// Declarations stay as long as the soname does: `packaging/interface` has them as the first release of this soname had
/// them. Before that release, `CACHEWISE_BLESS=1` writes the file anew.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn programs_of_the_last_release_of_this_soname_still_fit() {
    let mut command = Command::new("cc");
    command.args(["-E", "-P"]).arg(package().join("include/cachewise.h"));
    let text = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    the_interface_is_kept(SONAME, &text);
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn constants_and_version_are_the_libraries() {
    let header = header();
    let (major, minor, patch) = (
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH"),
    );
    for (part, value) in [("MAJOR", major), ("MINOR", minor), ("PATCH", patch)] {
        let line = format!("#define CW_VERSION_{part} {value}\n");
        assert!(header.contains(&line), "{line}");
    }
    for reuse in cachewise::Reuse::ALL {
        let line = format!("CW_REUSE_{} = {}", reuse.name().to_uppercase(), reuse as u8);
        assert!(header.contains(&line), "{line}");
    }
}
