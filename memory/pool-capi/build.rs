//! Linking of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The interface's version, by which programs find the library: before 1.0 every minor version may take names away.
    let version =
        |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}")).expect("Cargo sets it");
    let interface = match &*version("MAJOR") {
        "0" => format!("0.{}", version("MINOR")),
        major => major.to_owned(),
    };
    for argument in [
        format!("-Wl,-soname,libcachewise_pool.so.{interface}"),
        "-Wl,-z,now".to_owned(),
        "-Wl,-z,relro".to_owned(),
        // Threads and their destructors outlive a dlclose.
        "-Wl,-z,nodelete".to_owned(),
        "-Wl,--as-needed".to_owned(),
        "-Wl,--no-undefined".to_owned(),
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
