//! Linker options of the shared library, and of the one that counts.

fn main() {
    println!("cargo:rerun-if-changed=../preload/build.rs");
    let name = env!("CARGO_PKG_NAME").replace('-', "_");
    // As the C library's (lib/capi/build.rs).
    let interface = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,lib{name}.so.{interface}");
    for argument in [
        // Its own calls of memcpy are its own memcpy, whatever else the process has of that name.
        "-Wl,-Bsymbolic",
        // All of it is bound when it is loaded: no resolver runs inside somebody's memcpy.
        "-Wl,-z,now",
        "-Wl,-z,relro",
        "-Wl,--as-needed",
        // Only what is asked for by name, with any linker: a program may bring another C library than glibc.
        "-nostdlib",
        // dlclose must not take memcpy away.
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
