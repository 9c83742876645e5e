//! Linking of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The interface's version, by which programs find the library: before 1.0 every minor version may take names away.
    let interface = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcachewise_pool.so.{interface}");
    for argument in [
        "-Wl,-z,now",
        "-Wl,-z,relro",
        // Threads and their destructors outlive a dlclose.
        "-Wl,-z,nodelete",
        "-Wl,--as-needed",
        "-Wl,--no-undefined",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
