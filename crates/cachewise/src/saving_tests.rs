//! A save's steps on a file system that loses, after a crash, whatever it may lose; and the real
//! one, where somebody is in the way.

extern crate std;

use super::*;
use std::borrow::ToOwned as _;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::vec::Vec;
use std::{fs, vec};

const OLD: &[u8] = b"what was there";
const NEW: &[u8] = b"what is to be there, in several pieces";

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Create(CString, usize),
    Write(usize, Vec<u8>),
    Sync(usize),
    Rename(CString, CString),
    SyncDirectory,
    Remove(CString),
}

/// Writes down what it is asked for. The step of number `fails` is refused.
struct Recorder<'a> {
    steps: &'a mut Vec<Step>,
    files: usize,
    asked: usize,
    fails: Option<usize>,
}

impl Recorder<'_> {
    fn step(&mut self, step: Step) -> Result<(), Errno> {
        self.asked += 1;
        if self.fails == Some(self.asked - 1) {
            return Err(Errno(libc::ENOSPC));
        }
        self.steps.push(step);
        Ok(())
    }
}

impl Steps for Recorder<'_> {
    type File = usize;

    fn create(&mut self, name: &CStr) -> Result<usize, Errno> {
        self.files += 1;
        self.step(Step::Create(name.to_owned(), self.files))?;
        Ok(self.files)
    }

    fn write(&mut self, file: &mut usize, bytes: &[u8]) -> Result<usize, Errno> {
        // As full disks and pipes do: less than was asked for.
        let bytes = &bytes[..bytes.len().min(11)];
        self.step(Step::Write(*file, bytes.to_vec()))?;
        Ok(bytes.len())
    }

    fn sync(&mut self, file: &mut usize) -> Result<(), Errno> {
        self.step(Step::Sync(*file))
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        self.step(Step::Rename(from.to_owned(), to.to_owned()))
    }

    fn sync_directory(&mut self) -> Result<(), Errno> {
        self.step(Step::SyncDirectory)
    }

    fn remove(&mut self, name: &CStr) {
        self.steps.push(Step::Remove(name.to_owned()));
    }
}

/// The steps of a save; whether it said that all went well.
fn save(fails: Option<usize>) -> (Vec<Step>, bool) {
    let mut steps = vec![];
    let recorder = Recorder { steps: &mut steps, files: 0, asked: 0, fails };
    let saved = Pending::new(recorder, c"file").and_then(|mut file| {
        file.write(NEW)?;
        file.keep(c"file")
    });
    let saved = saved.is_ok();
    (steps, saved)
}

/// What became of a step that no sync has made durable.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Lost,
    /// The file is as long as if it had been written, and zero there.
    Length,
    Done,
}

/// The directory after a crash: names, and what is in the files.
fn after(steps: &[Step], fates: &[Fate], old: Option<&[u8]>) -> BTreeMap<CString, Vec<u8>> {
    let mut names = BTreeMap::new();
    let mut files: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    if let Some(old) = old {
        names.insert(c"file".to_owned(), 0);
        files.insert(0, old.to_vec());
    }
    let created: BTreeMap<_, _> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Create(name, file) => Some((name.clone(), *file)),
            _ => None,
        })
        .collect();
    let mut written = BTreeMap::new();
    for (step, fate) in steps.iter().zip(fates) {
        match step {
            Step::Create(name, file) if *fate == Fate::Done => {
                names.insert(name.clone(), *file);
            }
            Step::Write(file, bytes) => {
                let from: &mut usize = written.entry(*file).or_default();
                let content = files.entry(*file).or_default();
                if *fate != Fate::Lost {
                    content.resize(content.len().max(*from + bytes.len()), 0);
                }
                if *fate == Fate::Done {
                    content[*from..*from + bytes.len()].copy_from_slice(bytes);
                }
                *from += bytes.len();
            }
            Step::Rename(from, to) if *fate == Fate::Done => {
                names.remove(from);
                names.insert(to.clone(), created[from]);
            }
            Step::Remove(name) if *fate == Fate::Done => {
                names.remove(name);
            }
            _ => {}
        }
    }
    let content = |file| files.get(&file).cloned().unwrap_or_default();
    names.into_iter().map(|(name, file)| (name, content(file))).collect()
}

/// Every way in which a crash behind these steps may leave the directory: each step that no sync
/// has made durable is there or not, independently of the others.
fn crashes(steps: &[Step], old: Option<&[u8]>) -> Vec<BTreeMap<CString, Vec<u8>>> {
    let possible: Vec<&[Fate]> = (0..steps.len())
        .map(|at| {
            let behind = &steps[at + 1..];
            let (durable, fates): (bool, &[Fate]) = match &steps[at] {
                Step::Write(file, _) => {
                    (behind.contains(&Step::Sync(*file)), &[Fate::Lost, Fate::Length, Fate::Done])
                }
                Step::Sync(_) | Step::SyncDirectory => (true, &[]),
                _ => (behind.contains(&Step::SyncDirectory), &[Fate::Lost, Fate::Done]),
            };
            if durable { &[Fate::Done][..] } else { fates }
        })
        .collect();
    let mut all = vec![vec![]];
    for fates in possible {
        let longer = |chosen: Vec<Fate>| {
            fates.iter().map(move |fate| [&chosen[..], &[*fate]].concat()).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all.iter().map(|fates| after(steps, fates, old)).collect()
}

/// What a reader may find after a crash anywhere in these steps, and whether each is right.
fn check(steps: &[Step], old: Option<&[u8]>) -> Result<usize, &'static str> {
    let mut seen = 0;
    for length in 0..=steps.len() {
        for left in crashes(&steps[..length], old) {
            seen += 1;
            let found = left.get(c"file").map(Vec::as_slice);
            if found != old && found != Some(NEW) {
                return Err("neither the old nor the new content");
            }
            if length == steps.len() && found != Some(NEW) {
                return Err("saved, and lost");
            }
        }
    }
    Ok(seen)
}

#[test]
fn a_crash_anywhere_leaves_the_old_file_or_the_new_one() {
    let (steps, saved) = save(None);
    assert!(saved);
    for old in [Some(OLD), None] {
        let seen = check(&steps, old).expect("nothing is lost");
        assert!(seen > 200, "{seen} states");
    }
    // The check can fail: without either sync, and with the rename before the writing.
    let without = |step: &Step| -> Vec<Step> {
        steps.iter().filter(|other| *other != step).cloned().collect()
    };
    assert!(check(&without(&Step::Sync(1)), Some(OLD)).is_err());
    assert_eq!(check(&without(&Step::SyncDirectory), Some(OLD)), Err("saved, and lost"));
    let mut early = steps.clone();
    let rename = early.iter().position(|step| matches!(step, Step::Rename(..))).expect("one");
    let rename = early.remove(rename);
    early.insert(1, rename);
    assert!(check(&early, Some(OLD)).is_err());
}

#[test]
fn a_step_that_fails_leaves_the_old_file_and_nothing_else() {
    let (whole, _) = save(None);
    let mut failed = 0;
    for at in 0..whole.len() {
        let (steps, saved) = save(Some(at));
        let done = vec![Fate::Done; steps.len()];
        let left = after(&steps, &done, Some(OLD));
        let names: Vec<_> = left.keys().collect();
        assert_eq!(names, [c"file"], "step {at}");
        // Only the directory's sync comes behind the rename.
        let expected = if saved { NEW } else { OLD };
        assert_eq!(left[c"file"], expected, "step {at}");
        failed += usize::from(!saved);
    }
    assert_eq!(failed, whole.len() - 1);
}

fn path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("no NUL in it")
}

/// A lock for tests that ask for no other.
fn any_lock(directory: &Path) -> Lock {
    Lock::take(&path(&directory.join("lock")), 20_000).expect("a file").expect("free")
}

#[test]
fn files_are_replaced_and_nothing_is_left_beside_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let held = any_lock(directory.path());
    let file = directory.path().join("file");
    // What somebody left who was killed, and what is none of ours.
    let rest = Name::new(c"file", 7);
    for name in [rest.text(), c".cachewise-x.new"] {
        fs::write(directory.path().join(name.to_str().expect("ASCII")), OLD).expect("written");
    }
    for content in [&OLD.repeat(1000)[..], b"", NEW] {
        replace(&held, &path(&file), content).expect("saved");
        assert_eq!(fs::read(&file).expect("there"), content);
    }
    let count = || fs::read_dir(directory.path()).expect("listed").count();
    assert_eq!(count(), 3, "the file, the lock, and what is not ours");
    // What cannot be replaced stays, and so does everything else.
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).expect("made");
    assert_eq!(replace(&held, &path(&folder), NEW), Err(Errno(libc::EISDIR)));
    assert_eq!(replace(&held, c"/no/such/directory/file", NEW), Err(Errno(libc::ENOENT)));
    assert_eq!(replace(&held, c"..", NEW), Err(Errno(libc::EISDIR)));
    assert_eq!(count(), 4);
}

/// Who named `/dev/null` as root had a machine without it afterwards. A pipe and a link of this test's own stand
/// for what is in `/dev`.
#[test]
fn a_device_is_written_into_and_never_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let held = any_lock(directory.path());
    let (pipe, link) = (directory.path().join("pipe"), directory.path().join("link"));
    // SAFETY: the path ends in NUL.
    assert_eq!(unsafe { libc::mkfifo(path(&pipe).as_ptr(), 0o600) }, 0);
    symlink("/proc/self/fd/0", &link).expect("made");
    for special in [&pipe, &link] {
        assert_eq!(may_replace(&path(special)), Err(Errno(libc::ENOTSUP)));
        assert_eq!(replace(&held, &path(special), NEW), Err(Errno(libc::ENOTSUP)));
        assert!(NewFile::create(special).is_err() && is_special(special));
    }
    // Open both ways, so that nobody waits for the other end.
    let ends = fs::OpenOptions::new().read(true).write(true).open(&pipe);
    let mut ends = ends.expect("a pipe");
    replace_file(&pipe, NEW).expect("written into it");
    let mut found = vec![0; NEW.len()];
    std::io::Read::read_exact(&mut ends, &mut found).expect("as much");
    assert_eq!(found, NEW);
    let file = directory.path().join("file");
    assert!(may_replace(&path(&file)).is_ok() && !is_special(&file));
    fs::write(&file, OLD).expect("written");
    assert!(may_replace(&path(&file)).is_ok() && !is_special(&file));
    // With the lock, and nothing else.
    assert_eq!(fs::read_dir(directory.path()).expect("listed").count(), 4);
}

#[test]
fn a_link_redirects_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, target) = (directory.path().join("file"), directory.path().join("target"));
    fs::write(&target, OLD).expect("written");
    let held = any_lock(directory.path());
    // In place of the file: it is the link that goes.
    symlink(&target, &file).expect("made");
    replace(&held, &path(&file), NEW).expect("saved");
    assert_eq!(
        (fs::read(&file).expect("a file"), fs::read(&target).expect("it")),
        (NEW.to_vec(), OLD.to_vec())
    );
    assert!(!file.is_symlink());
    // In place of the new file, had somebody guessed its name.
    let (mut inside, name) =
        Directory::of(&path(&file), 0o644).map(|(of, name)| (of, name.to_owned())).expect("opened");
    let guessed = Name::new(&name, 5);
    symlink(&target, directory.path().join(guessed.text().to_str().expect("ASCII"))).expect("made");
    assert_eq!(inside.create(guessed.text()).err(), Some(Errno(libc::EEXIST)));
    assert!(is_rest_of(guessed.text().to_bytes(), &name));
    assert!(!is_rest_of(guessed.text().to_bytes(), c"other") && !is_rest_of(b"file", &name));
    // In place of the lock.
    drop(held);
    let (lock, made) = (directory.path().join("linked"), directory.path().join("made"));
    symlink(&made, &lock).expect("made");
    assert!(Lock::take(&path(&lock), 5000).is_err());
    assert!(!made.exists());
}

/// Two names are never the same, in one process or in two that were forked.
#[test]
fn names_are_not_to_be_guessed() {
    let names: std::collections::BTreeSet<_> = (0..1000).map(|_| random()).collect();
    assert_eq!(names.len(), 1000);
}

/// Ends the child that this process is now, without what a test's end does.
fn end(status: i32) -> ! {
    // SAFETY: always callable.
    unsafe { libc::_exit(status) }
}

fn fork(body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child makes system calls and ends; it allocates nothing.
    let child = unsafe { libc::fork() };
    if child == 0 {
        body();
        end(0);
    }
    assert!(child > 0);
    child
}

fn wait(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

#[test]
fn a_lock_ends_with_its_holder_and_no_child_inherits_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = path(&directory.path().join("lock"));
    let (mut holds, mut lives) = ([0; 2], [0; 2]);
    for pipe in [&mut holds, &mut lives] {
        // SAFETY: two descriptors' room.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    }
    let byte = || Box::new([0_u8; 1]);
    let read = |from: i32| {
        let mut byte = byte();
        // SAFETY: one byte's room.
        unsafe { libc::read(from, byte.as_mut_ptr().cast(), 1) }
    };
    let holder = fork(|| {
        let Ok(Some(held)) = Lock::take(&lock, 10_000) else { end(1) };
        // A child of the middle of it, which lives on.
        fork(|| {
            // SAFETY: a descriptor of this process.
            unsafe { libc::close(lives[1]) };
            read(lives[0]);
        });
        // SAFETY: one byte.
        unsafe { libc::write(holds[1], b"x".as_ptr().cast(), 1) };
        loop {
            std::hint::black_box(&held);
            os::files::pause(10_000_000);
        }
    });
    assert_eq!(read(holds[0]), 1);
    assert!(Lock::take(&lock, 0).expect("a file").is_none(), "it is held");
    // SAFETY: the child that was forked above.
    unsafe { libc::kill(holder, libc::SIGKILL) };
    wait(holder);
    let held = Lock::take(&lock, 10_000).expect("a file");
    assert!(held.is_some(), "its holder is dead, and the child of it has none");
    // The same from inside: a child of ours takes it once we gave it back, and not before.
    let early = fork(|| end(i32::from(matches!(Lock::take(&lock, 0), Ok(Some(_))))));
    assert_eq!(wait(early), 0);
    drop(held);
    let late = fork(|| end(i32::from(matches!(Lock::take(&lock, 10_000), Ok(Some(_))))));
    assert_eq!(libc::WEXITSTATUS(wait(late)), 1);
    // SAFETY: descriptors of this process.
    unsafe { libc::close(lives[1]) };
}

#[test]
fn a_lock_whose_file_was_removed_is_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let lock = path(&directory.path().join("lock"));
    let held = Lock::take(&lock, 10_000).expect("a file").expect("free");
    held.remove(&lock);
    assert!(!directory.path().join("lock").exists());
    // Two processes that both wait for it: each time one of them removes what it held.
    let counted = directory.path().join("count");
    fs::write(&counted, "").expect("written");
    let one = |letter: &'static [u8]| {
        let (lock, counted) = (&lock, path(&counted));
        fork(move || {
            for _ in 0..200 {
                let Ok(Some(held)) = Lock::take(lock, 20_000) else { end(1) };
                let Ok(mut file) = File::open_with(libc::AT_FDCWD, &counted, libc::O_RDWR, 0)
                else {
                    end(2)
                };
                let mut before = [0; 1024];
                let Ok(length) = file.read(&mut before) else { end(3) };
                // At the place that was the end: two at once write to the same one.
                before[length] = letter[0];
                let Ok(mut again) = File::open_with(libc::AT_FDCWD, &counted, libc::O_RDWR, 0)
                else {
                    end(2)
                };
                if again.write(&before[..=length]) != Ok(length + 1) {
                    end(4);
                }
                let _ = &mut file;
                held.remove(lock);
            }
        })
    };
    for child in [one(b"a"), one(b"b")] {
        assert_eq!(wait(child), 0);
    }
    let counted = fs::read(&counted).expect("there");
    assert_eq!(counted.len(), 400, "two at once");
}
