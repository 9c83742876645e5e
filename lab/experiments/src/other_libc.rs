//! Another C library, in a helper of its own: started by that library's loader, as no program can have two.

use crate::error::LabError;
use cachewise_measure::Libc;
use std::path::{Path, PathBuf};

/// Places of the loader in a distribution's package, below the folder that it was unpacked to.
const BELOW: [&str; 4] = ["", "lib64", "lib", "usr/lib64"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherLibc {
    /// `glibc 2.41`.
    pub name: String,
    pub(crate) loader: PathBuf,
}

impl OtherLibc {
    /// The library in this folder, or in that of an unpacked package.
    ///
    /// # Errors
    /// The folder has no loader, or one that does not tell its version: what was found, what is accepted.
    pub fn of(folder: &Path) -> Result<OtherLibc, LabError> {
        let refused = |found: String| {
            LabError::Usage(format!(
                "--libc {}: expected a folder with glibc's ld-*.so.* and libc.so.6, found {found}",
                folder.display()
            ))
        };
        let multiarch = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let folders = BELOW.into_iter().chain([multiarch.as_str()]).map(|below| folder.join(below));
        let loader = folders.filter(|folder| folder.join("libc.so.6").exists()).find_map(loader_in);
        let loader = loader.ok_or_else(|| refused("none".to_owned()))?;
        let Libc { version, .. } = Libc::of_loader(&loader, "")
            .map_err(|error| refused(format!("{}: {error}", loader.display())))?;
        Ok(OtherLibc { name: format!("glibc {version}"), loader })
    }
}

fn loader_in(folder: PathBuf) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut loaders: Vec<PathBuf> = files
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("ld-linux") || name.starts_with("ld64.so")
        })
        .collect();
    loaders.sort();
    loaders.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_own_is_found_and_an_empty_folder_refused() {
        let system = Path::new("/");
        if system.join(format!("usr/lib/{}-linux-gnu/libc.so.6", std::env::consts::ARCH)).exists() {
            let found = OtherLibc::of(system).expect("this system's");
            assert!(found.name.starts_with("glibc 2."), "{}", found.name);
        }
        let empty = tempfile::tempdir().expect("a folder");
        let error = OtherLibc::of(empty.path()).expect_err("nothing there").to_string();
        assert!(error.starts_with("--libc ") && error.contains("expected a folder"), "{error}");
    }
}
