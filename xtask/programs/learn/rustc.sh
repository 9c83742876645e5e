# rustc: a generated file of sixty functions, optimised. A Rust and C++ (LLVM) program.
set -eu
. "$COMMON"
case $1 in
prepare)
    [ -x /usr/bin/rustc ] || { echo "rustc not installed"; exit 77; }
    /usr/bin/rustc --version >/dev/null 2>&1 || { echo "rustc does not start"; exit 77; }
    awk -v functions="$(part 60)" 'BEGIN {
        for (i = 0; i < functions; i++) {
            printf "pub fn f%d(v: &[u%d], s: &mut String) -> usize {\n", i, (i % 2 ? 32 : 64)
            printf "    let mut words: Vec<String> = v.iter().filter(|x| **x %% %d != 0)", i % 13 + 2
            printf ".map(|x| format!(\"{}-%d\", x)).collect();\n    words.sort();\n", i
            printf "    s.push_str(&words.join(\",\"));\n    words.len() + %d\n}\n", i
        }
    }' >large.rs
    ;;
run)
    on_one_cpu
    /usr/bin/rustc --edition 2021 --crate-type lib -O -C codegen-units=1 -C metadata=x \
        --remap-path-prefix "$PREPARED"=. --emit obj -o large.o "$PREPARED/large.rs"
    sha256sum <large.o
    ;;
esac
