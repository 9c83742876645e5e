//! Records from a fuzzer's bytes, and other processes. Who runs programs waits for every child that there is, so one
//! at a time.

#[cfg(target_os = "linux")]
mod children;
mod corpus;
#[cfg(target_os = "linux")]
mod whole;

/// Held by who waits for children.
#[cfg(target_os = "linux")]
static CHILDREN: std::sync::Mutex<()> = std::sync::Mutex::new(());
