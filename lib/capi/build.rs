//! Linker options of the shared library, and whether its functions are written out.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // As `cachewise::entry`, whose macros need both.
    let is = |variable, value| {
        std::env::var(variable).is_ok_and(|all| all.split(',').any(|one| one == value))
    };
    println!("cargo:rustc-check-cfg=cfg(written_out)");
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_FEATURE", "sse2") {
        println!("cargo:rustc-cfg=written_out");
    }
    // The interface's version, by which programs find the library: before 1.0 every minor version may take names away.
    let version =
        |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}")).expect("Cargo sets it");
    let interface = match &*version("MAJOR") {
        "0" => format!("0.{}", version("MINOR")),
        major => major.to_owned(),
    };
    for argument in [
        format!("-Wl,-soname,libcachewise.so.{interface}"),
        // No other object's cw_* is called in place of its own.
        "-Wl,-Bsymbolic".to_owned(),
        "-Wl,-z,now".to_owned(),
        "-Wl,-z,relro".to_owned(),
        "-Wl,--as-needed".to_owned(),
        "-Wl,--no-undefined".to_owned(),
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
