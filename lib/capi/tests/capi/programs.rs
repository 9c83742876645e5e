//! C and C++ programs, linked both ways, run, and run under valgrind.

use crate::support::{Linked, compile, libraries, output, run};
use std::path::Path;
use std::process::Command;

const C89: &[&str] = &["-std=c89", "-pedantic"];
const GNU: &[&str] = &["-std=gnu11"];
const CPP: &[&str] = &["-std=c++11", "-pedantic"];

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_contract_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(directory.path(), "tests/c/contract.c", C89, linked);
        assert_eq!(output(&program), "contract kept\n");
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_first_call_leaves_nothing_mapped() {
    let directory = tempfile::tempdir().expect("a directory");
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(directory.path(), "tests/c/limits.c", GNU, linked);
        assert_eq!(output(&program), "nothing mapped\n");
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn under_address_sanitizer_nothing_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let sanitized = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"];
    let flags = [C89, &sanitized].concat();
    let program = compile(directory.path(), "tests/c/contract.c", &flags, Linked::Static);
    assert_eq!(output(&program), "contract kept\n");
}

/// The warning was once written into whatever file the program had in stderr's place by then.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_warning_goes_to_stderr_and_to_no_file_in_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(directory.path(), "tests/c/data.c", GNU, linked);
        for words in [&[][..], &["data"]] {
            let mut command = Command::new(&program);
            command.args(words).current_dir(directory.path());
            command.env_remove("LD_PRELOAD").env_remove("CACHEWISE_QUIET");
            let told = run(command.env("CACHEWISE_PROFILE", "/nonexistent"));
            let (stdout, stderr) =
                (told.stdout, String::from_utf8_lossy(&told.stderr).into_owned());
            let replaced = !words.is_empty();
            assert_eq!(
                stdout,
                if replaced { b"data, 0\n".to_vec() } else { b"stderr, 0\n".to_vec() }
            );
            assert_eq!(stderr.contains("/nonexistent: file"), !replaced, "{linked:?}: {stderr}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn examples_run_and_valgrind_has_no_complaint() {
    let directory = tempfile::tempdir().expect("a directory");
    for (source, flags, ends) in [
        ("examples/log_ring.c", C89, "bytes sent\n"),
        ("examples/snapshot.cpp", CPP, "snapshots hold\n"),
    ] {
        for linked in [Linked::Shared, Linked::Static] {
            let program = compile(directory.path(), source, flags, linked);
            let told = output(&program);
            assert!(told.ends_with(ends), "{source}: {told}");
        }
        let program = compile(directory.path(), source, flags, Linked::Shared);
        valgrind(&program, ends);
    }
    let program = compile(directory.path(), "tests/c/contract.c", C89, Linked::Shared);
    valgrind(&program, "contract kept\n");
}

/// Valgrind's CPU has no AVX-512, and says so: the library then chooses other kernels.
fn valgrind(program: &Path, ends: &str) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("valgrind: SKIPPED, not installed");
        return;
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]).arg(program);
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    let told = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    assert!(told.ends_with(ends), "{told}");
}

/// Somebody's shared library may have it inside, as Cargo leaves it: its code is independent of its
/// place, and all of it is taken, so that no part goes unseen.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn the_static_library_goes_into_a_shared_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let built = directory.path().join("libsomebodys.so");
    let mut command = Command::new("cc");
    command.args(["-shared", "-Wl,-z,text", "-Wl,--whole-archive"]);
    command.arg(libraries().join("libcachewise.a")).arg("-Wl,--no-whole-archive");
    run(command.arg("-o").arg(&built));
    #[cfg(target_arch = "x86_64")]
    calls_begin_with_the_comparison_of_their_size(&built);
}

/// Larger sizes go on to the comparison that tells the entry, and by jumps inside the library: one by way of the
/// procedure linkage table may run the dynamic linker, which keeps arguments, not flags, and by these `avx512vl` and
/// `sse2` are told apart.
#[cfg(target_arch = "x86_64")]
fn calls_begin_with_the_comparison_of_their_size(library: &Path) {
    use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
    let bytes = std::fs::read(library).expect("the library");
    let file = object::File::parse(&*bytes).expect("an object file");
    let text = file.section_by_name(".text").expect(".text");
    let (code, start) = (text.data().expect("its bytes"), text.address());
    let inside = start..start + text.size();
    let decoded = |at: u64| -> Instruction {
        let from = (at - start) as usize;
        Decoder::with_ip(64, &code[from..], at, DecoderOptions::NONE).decode()
    };
    // Target of the instruction there, if it is this jump.
    let led = |at: u64, mnemonic: Mnemonic, name: &str| {
        let one = decoded(at);
        assert_eq!(one.mnemonic(), mnemonic, "{name}: {one}");
        let target = one.near_branch_target();
        assert!(inside.contains(&target), "{name}: {one} leads out of .text");
        target
    };
    for name in ["cw_copy", "cw_move", "cw_fill", "cw_zero", "cw_compare", "cw_equal"] {
        let mut symbols = file.dynamic_symbols();
        let symbol = symbols.find(|one| one.name_bytes() == Ok(name.as_bytes())).expect(name);
        let mut first = symbol.address();
        // Fills and comparisons ask for the entry's number first.
        let copies = ["cw_copy", "cw_move"].contains(&name);
        if !copies {
            let number = decoded(first);
            assert!(number.is_ip_rel_memory_operand(), "{name}: {number}");
            assert_eq!(number.mnemonic(), Mnemonic::Cmp, "{name}: {number}");
            led(number.next_ip(), Mnemonic::Ja, name);
            first = decoded(number.next_ip()).next_ip();
        }
        // Behind what says what is returned.
        let returns = decoded(first);
        let is_size = returns.mnemonic() == Mnemonic::Cmp;
        let size = if is_size { returns } else { decoded(returns.next_ip()) };
        let n = if name == "cw_zero" { Register::RSI } else { Register::RDX };
        assert_eq!((size.mnemonic(), size.op0_register()), (Mnemonic::Cmp, n), "{name}: {size}");
        assert!(is_size || returns.mnemonic() == Mnemonic::Mov, "{name}: {returns}");
        let by_size = |from: u64, within: u64| {
            let mut size = from;
            while decoded(size).mnemonic() != Mnemonic::Ja {
                assert!(size - from < within, "{name}: no jump by the size");
                size = decoded(size).next_ip();
            }
            led(size, Mnemonic::Ja, name)
        };
        let mut large = by_size(size.next_ip(), 1);
        if ["cw_compare", "cw_equal"].contains(&name) {
            // Sizes of 33 to 64 bytes and more begin alike.
            large = by_size(large, 64);
        }
        let choice = decoded(large);
        assert_eq!(choice.mnemonic(), Mnemonic::Cmp, "{name}: {choice}");
        assert!(choice.is_ip_rel_memory_operand(), "{name}: {choice}");
        let others = led(choice.next_ip(), Mnemonic::Jne, name);
        if copies {
            led(others, Mnemonic::Jb, name);
        }
    }
}

/// A function is the operation and no jump through a table.
#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_call_begins_with_the_comparison_of_its_size() {
    calls_begin_with_the_comparison_of_their_size(&libraries().join("libcachewise.so"));
}

/// Trap flag and registers are x86-64's.
#[cfg(target_arch = "x86_64")]
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn a_signal_handler_may_call_it_while_the_first_call_is_under_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "tests/c/stepped.c", GNU, Linked::Shared);
    assert_eq!(output(&program), "interrupted everywhere\n");
}

/// Whatever happens, nothing unwinds out of it: the library has nothing that could.
#[test]
#[cfg_attr(not(feature = "as-shipped"), ignore = "cargo test -F as-shipped")]
fn nothing_in_it_unwinds() {
    let bytes = std::fs::read(libraries().join("libcachewise.so")).expect("the library");
    let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    assert!(has(b"cw_copy"));
    assert!(!has(b"_Unwind_RaiseException") && !has(b"_Unwind_Resume"));
}
