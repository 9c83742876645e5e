//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        "-Wl,-soname,libcachewise_pool_preload.so.0",
        // All of it is bound when it is loaded: no resolver runs inside somebody's malloc.
        "-Wl,-z,now",
        "-Wl,-z,relro",
        "-Wl,--as-needed",
        // dlclose must not take malloc away.
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
