//! A preload library that the command carries, put where the dynamic linker can read it.
//!
//! `verbs/exec.rs` looks first beside the program and in its tree, so that a library which an administrator installed
//! is used. `cargo install` installs the command alone, and needs this one.

use anyhow::{Context as _, bail};
use cachewise_libraries::{build_name, embedded};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The library as a file of the user's; `None` where this build carries none.
pub fn written_out(library: &str) -> anyhow::Result<Option<PathBuf>> {
    let Some(bytes) = embedded(library) else { return Ok(None) };
    let Some(data) = data_directory() else {
        bail!("neither XDG_DATA_HOME nor HOME is an absolute path");
    };
    let directory = data.join("cachewise/lib").join(build_name(bytes));
    // A build for a level of the CPU is named by its folder.
    place(bytes, &directory, library.rsplit('/').next().unwrap_or(library)).map(Some)
}

/// Folder in which a user's programs keep their data (XDG Base Directory Specification).
fn data_directory() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))
}

/// The file with these bytes: the one that is there, or a new one in its place, whole at every moment.
fn place(bytes: &[u8], directory: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(directory);
    made.with_context(|| directory.display().to_string())?;
    let of = fs::metadata(directory).with_context(|| directory.display().to_string())?;
    // A user who can write there could have another library loaded into the user's programs.
    if of.uid() != rustix::process::geteuid().as_raw() || of.mode() & 0o022 != 0 {
        bail!(
            "{}: expected a directory of this user's alone, found one that others can write to",
            directory.display()
        );
    }
    let file = directory.join(name);
    if fs::read(&file).is_ok_and(|found| found == bytes) {
        return Ok(file);
    }
    let written = || -> std::io::Result<()> {
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        new.write_all(bytes)?;
        new.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        new.as_file().sync_all()?;
        new.persist(&file)?;
        fs::File::open(directory)?.sync_all()
    };
    written().with_context(|| file.display().to_string())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_written_once_and_a_damaged_one_is_replaced() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join("a/b");
        let file = place(b"library", &directory, "lib.so").expect("placed");
        let inode = |file: &Path| fs::metadata(file).expect("there").ino();
        let first = inode(&file);
        place(b"library", &directory, "lib.so").expect("placed");
        assert_eq!(inode(&file), first, "written again though it was right");
        fs::write(&file, b"lib").expect("damaged");
        place(b"library", &directory, "lib.so").expect("placed");
        assert_eq!(fs::read(&file).expect("read"), b"library");
        assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(&directory).expect("read").count(), 1, "something was left");
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let root = tempfile::tempdir().expect("a directory");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o777)).expect("chmod");
        let error = place(b"library", root.path(), "lib.so").expect_err("refused");
        assert!(error.to_string().contains("others can write to"), "{error}");
        assert_eq!(fs::read_dir(root.path()).expect("read").count(), 0);
    }
}
