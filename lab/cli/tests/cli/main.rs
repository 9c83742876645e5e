//! The command as a user meets it, one module a theme; `support` starts it.

#[cfg(target_os = "linux")]
mod advise;
mod bad_input;
mod compare;
mod documents;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod exec;
mod experiments;
mod files;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod peers;
mod reports;
mod scrubd;
mod support;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod surroundings;
mod verbs;
