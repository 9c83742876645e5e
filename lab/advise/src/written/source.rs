//! Forms in source: `mallopt` for C, Rust and Python, which leaves what the operator has set.

use crate::candidates::Candidate;

/// glibc's tunables that `mallopt` has too: their parameter and their variable of old.
const MALLOPT: [(&str, &str, i32, &str); 5] = [
    ("glibc.malloc.trim_threshold", "M_TRIM_THRESHOLD", -1, "MALLOC_TRIM_THRESHOLD_"),
    ("glibc.malloc.top_pad", "M_TOP_PAD", -2, "MALLOC_TOP_PAD_"),
    ("glibc.malloc.mmap_threshold", "M_MMAP_THRESHOLD", -3, "MALLOC_MMAP_THRESHOLD_"),
    ("glibc.malloc.mmap_max", "M_MMAP_MAX", -4, "MALLOC_MMAP_MAX_"),
    ("glibc.malloc.arena_max", "M_ARENA_MAX", -8, "MALLOC_ARENA_MAX"),
];
/// `PR_SET_THP_DISABLE` (prctl(2)).
const NO_HUGE_PAGES: i32 = 41;

/// One call of `mallopt`.
struct Call {
    tunable: &'static str,
    parameter: &'static str,
    number: i32,
    variable: &'static str,
    value: i32,
}

/// The calls that a setting comes to.
fn calls(candidate: &Candidate) -> Result<Vec<Call>, String> {
    let mut calls = Vec::new();
    for (name, value) in &candidate.variables {
        if name != "GLIBC_TUNABLES" {
            return Err(format!(
                "{name} cannot be set by the program itself; accepted *.sh, *.env, *.conf, *Dockerfile*, compose*.yaml, \
                 *k8s*.yaml"
            ));
        }
        for one in value.split(':') {
            let (tunable, value) = one.split_once('=').unwrap_or((one, ""));
            let found = MALLOPT.iter().find(|(name, ..)| *name == tunable);
            let Some(&(tunable, parameter, number, variable)) = found else {
                return Err(format!(
                    "{tunable} has no mallopt(3); accepted *.sh, *.env, *.conf, *Dockerfile*, compose*.yaml, *k8s*.yaml"
                ));
            };
            let value = value
                .parse()
                .map_err(|_| format!("{tunable}={value}: more than mallopt(3) takes"))?;
            calls.push(Call { tunable, parameter, number, variable, value });
        }
    }
    Ok(calls)
}

/// A C file: a constructor, so that it takes effect where it is linked.
pub(super) fn c(candidate: &Candidate) -> Result<String, String> {
    let call = |call: &Call| {
        let Call { tunable, parameter, variable, value, .. } = call;
        format!(
            "    if (!is_set(\"{tunable}=\", \"{variable}\"))\n        mallopt({parameter}, {value});\n"
        )
    };
    let calls = calls(candidate)?;
    let mut body: String = calls.iter().map(call).collect();
    let mut is_set = "";
    if !calls.is_empty() {
        is_set = "static int is_set(const char *tunable, const char *variable)\n{\n    \
                  const char *all = getenv(\"GLIBC_TUNABLES\");\n    \
                  return getenv(variable) || (all && strstr(all, tunable));\n}\n\n";
    }
    if candidate.no_huge_pages {
        body.push_str(&format!(
            "    prctl({NO_HUGE_PAGES}, 1, 0, 0, 0); /* PR_SET_THP_DISABLE */\n"
        ));
    }
    Ok(format!(
        "// Compile and link it into the program. What the operator has set by a variable stays.\n\
         #include <malloc.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/prctl.h>\n\n{is_set}\
         __attribute__((constructor)) static void advised(void)\n{{\n{body}}}\n"
    ))
}

/// A Rust module with a function for the beginning of `main`.
pub(super) fn rust(candidate: &Candidate) -> Result<String, String> {
    let calls = calls(candidate)?;
    let call = |call: &Call| {
        let Call { tunable, number, variable, value, .. } = call;
        format!("        (\"{tunable}=\", \"{variable}\", {number}, {value}),\n")
    };
    let table: String = calls.iter().map(call).collect();
    let mut body = String::new();
    if !calls.is_empty() {
        body.push_str(&format!(
            "    let tunables = std::env::var(\"GLIBC_TUNABLES\").unwrap_or_default();\n    \
             let all: [(&str, &str, i32, i32); {}] = [\n{table}    ];\n    \
             for (tunable, variable, parameter, value) in all {{\n        \
             if !tunables.contains(tunable) && std::env::var_os(variable).is_none() {{\n            \
             // SAFETY: mallopt(3) takes any numbers.\n            \
             unsafe {{ mallopt(parameter, value) }};\n        }}\n    }}\n",
            calls.len()
        ));
    }
    if candidate.no_huge_pages {
        body.push_str(&format!(
            "    // SAFETY: PR_SET_THP_DISABLE takes numbers alone.\n    unsafe {{ prctl({NO_HUGE_PAGES}, 1, 0, 0, 0) }};\n"
        ));
    }
    let mut functions = String::new();
    if !calls.is_empty() {
        functions.push_str("    fn mallopt(parameter: i32, value: i32) -> i32;\n");
    }
    if candidate.no_huge_pages {
        functions.push_str(
            "    fn prctl(option: i32, a: std::ffi::c_ulong, b: std::ffi::c_ulong, c: std::ffi::c_ulong, d: \
             std::ffi::c_ulong) -> i32;\n",
        );
    }
    Ok(format!(
        "//! Call `advised()` first in `main`. What the operator has set by a variable stays.\n\n\
         unsafe extern \"C\" {{\n{functions}}}\n\n/// Sets it for this process.\npub fn advised() {{\n{body}}}\n"
    ))
}

/// A Python module that sets it when it is imported.
pub(super) fn python(candidate: &Candidate) -> Result<String, String> {
    let calls = calls(candidate)?;
    let call = |call: &Call| {
        let Call { tunable, number, variable, value, .. } = call;
        format!("    (\"{tunable}=\", \"{variable}\", {number}, {value}),\n")
    };
    let table: String = calls.iter().map(call).collect();
    let mut text = "# Import it before all else. What the operator has set by a variable stays.\n\
                    import ctypes\nimport os\n\n_libc = ctypes.CDLL(None)\n"
        .to_owned();
    if !calls.is_empty() {
        text.push_str(&format!(
            "for _tunable, _variable, _parameter, _value in (\n{table}):\n    \
             if _tunable not in os.environ.get(\"GLIBC_TUNABLES\", \"\") and _variable not in os.environ:\n        \
             _libc.mallopt(_parameter, _value)\n"
        ));
    }
    if candidate.no_huge_pages {
        text.push_str(&format!("_libc.prctl({NO_HUGE_PAGES}, 1, 0, 0, 0)  # PR_SET_THP_DISABLE\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use crate::candidates::{Acts, Candidate, Kind};
    use crate::written::{Form, text};
    use std::process::Command;

    fn setting(line: &str) -> Candidate {
        Candidate {
            name: "x".to_owned(),
            kind: Kind::Variables,
            acts: Acts::Faults,
            variables: vec![("GLIBC_TUNABLES".to_owned(), line.to_owned())],
            words: vec![],
            no_huge_pages: true,
        }
    }

    const LINE: &str = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1073741824";

    fn written(form: Form) -> String {
        text(form, &setting(LINE), &[], "y").expect("a text")
    }

    /// Runs it without and with an operator's variable. It prints whether a large block is a mapping by itself, by bit
    /// 1 of the word before it (malloc/malloc.c: IS_MMAPPED), and whether huge pages are off.
    fn prints(mut program: Command, set: &str, expected: &str) {
        for (name, value, mapped) in [
            ("UNRELATED", "1", set),
            ("GLIBC_TUNABLES", "glibc.malloc.mmap_max=65536", expected),
            ("MALLOC_MMAP_MAX_", "65536", expected),
        ] {
            let out = program
                .env_remove("GLIBC_TUNABLES")
                .env_remove("MALLOC_MMAP_MAX_")
                .env(name, value)
                .output()
                .expect("it runs");
            assert!(out.status.success(), "{out:?}");
            assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), mapped, "{name}");
        }
    }

    #[test]
    fn c_compiles_takes_effect_and_leaves_what_the_operator_has_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("advised.c"), written(Form::C)).expect("written");
        let main = "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/prctl.h>\n\
                    int main(void) { size_t *p = malloc(1 << 20); p[0] = 1; \
                    printf(\"%d %d\\n\", (int)(p[-1] & 2), prctl(42, 0, 0, 0, 0)); free(p); }\n";
        std::fs::write(path("main.c"), main).expect("written");
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Wextra", "-Werror", "-fno-builtin", "-o"]);
        cc.args(["main", "main.c", "advised.c"].map(path));
        assert!(cc.status().expect("cc").success());
        prints(Command::new(path("main")), "0 1", "2 1");
    }

    #[test]
    fn rust_compiles_takes_effect_and_leaves_what_the_operator_has_set() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("advised.rs"), written(Form::Rust)).expect("written");
        let main = "mod advised;\nunsafe extern \"C\" { fn malloc(n: usize) -> *mut usize; fn prctl(o: i32, a: usize, b: usize, \
                    c: usize, d: usize) -> i32; }\nfn main() { advised::advised(); unsafe { let p = malloc(1 << 20); \
                    println!(\"{} {}\", p.sub(1).read() & 2, prctl(42, 0, 0, 0, 0)); } }\n";
        std::fs::write(path("main.rs"), main).expect("written");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition", "2024", "-o"]).args(["main", "main.rs"].map(path));
        assert!(rustc.status().expect("rustc").success());
        prints(Command::new(path("main")), "0 1", "2 1");
    }

    #[test]
    fn python_takes_effect_and_leaves_what_the_operator_has_set() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("advised.py"), written(Form::Python)).expect("written");
        let main = "import advised, ctypes; l = ctypes.CDLL(None); l.malloc.restype = ctypes.c_size_t\n\
                    p = l.malloc(1 << 20); print(ctypes.c_size_t.from_address(p - 8).value & 2, l.prctl(42, 0, 0, 0, 0))";
        let mut python = Command::new("python3");
        python.args(["-c", main]).current_dir(folder.path());
        prints(python, "0 1", "2 1");
    }

    #[test]
    fn what_source_cannot_set_names_the_forms_that_can() {
        let tcache = setting("glibc.malloc.tcache_count=0");
        let why = text(Form::C, &tcache, &[], "y").expect_err("no mallopt");
        assert!(
            why.contains("glibc.malloc.tcache_count has no mallopt(3); accepted *.sh"),
            "{why}"
        );
        let mut preload = setting("");
        preload.variables = vec![("LD_PRELOAD".to_owned(), "libjemalloc.so.2".to_owned())];
        let why = text(Form::Python, &preload, &[], "y").expect_err("no preload");
        assert!(why.starts_with("LD_PRELOAD cannot be set by the program itself"), "{why}");
        let large = setting("glibc.malloc.trim_threshold=8589934592");
        assert!(
            text(Form::Rust, &large, &[], "y").is_err_and(|why| why.contains("more than mallopt"))
        );
    }
}
