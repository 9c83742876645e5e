//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").expect("Cargo sets it");
    for argument in [
        // The interface's version; what a program needs is found under this name.
        format!("-Wl,-soname,libcachewise_pool.so.{major}"),
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
