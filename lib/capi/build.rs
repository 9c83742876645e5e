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
    let interface = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcachewise.so.{interface}");
    for argument in [
        // No other object's cw_* is called in place of its own.
        "-Wl,-Bsymbolic",
        "-Wl,-z,now",
        "-Wl,-z,relro",
        "-Wl,--as-needed",
        "-Wl,--no-undefined",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
