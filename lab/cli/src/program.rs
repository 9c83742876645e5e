//! The program that a verb runs, and its file.

use anyhow::Context as _;
use cachewise::profile::Profile;
pub use cachewise_advise::executable::{find, not_started, regular};
use std::fs;
use std::path::{Path, PathBuf};

/// The profile that the option names, wherever a program looks for it from.
pub fn canonical(profile: &Path) -> anyhow::Result<PathBuf> {
    let named = || format!("--profile {}", profile.display());
    let path = fs::canonicalize(profile).with_context(named)?;
    Profile::read(&path).context("--profile")?;
    Ok(path)
}

/// Names that [`is_name`] accepts.
pub const NAMES: &str = "1 to 245 bytes that are a file's name, without control characters, spaces, brackets and quotes";
/// The longest name of a file, less what the folder of a systemd drop-in has behind it.
const LONGEST: usize = 255 - ".service.d".len();

/// Returns whether a program's name is one file's name, and one word in the files that are made of it.
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| !c.is_control() && !c.is_whitespace() && !"/[]\"'\\".contains(c);
    let dots = matches!(name, "." | "..");
    !name.is_empty() && name.len() <= LONGEST && !dots && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_file_and_one_word() {
        for name in ["redis-server", "a.out", "g++", "prog:1", "straße"] {
            assert!(is_name(name), "{name}");
        }
        let long = "x".repeat(LONGEST + 1);
        let refused = [
            "", ".", "..", "../x", "a/b", "/x", "a]b", "[x", "a\nb", "a b", "a\0", "a\"b",
            "a\u{85}", &long,
        ];
        for name in refused {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
