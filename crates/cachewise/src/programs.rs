//! A program's section of the profile: read at the start, merged and written at the end.
//!
//! Not for use by programs; the preload library's sites and [`crate::Site`]'s are kept by it.
//!
//! Several processes may share a file. Each holds `FILE.lock` while it reads what others have saved
//! meanwhile, keeps of every site what has seen more calls, and puts a new file in place of the old
//! one (`saving.rs`). What is no section, or another CPU's, or a later version's, is refused by
//! name and left alone. A section that is cut short or damaged, or an earlier version's, is set
//! aside as `FILE.damaged` by the first process that meets it, and everything begins anew; an empty
//! file is none.

use crate::cpu::Signature;
use crate::cursor::Cursor;
use crate::hooks;
use crate::os::files::{self, List};
/// Paths without an allocation.
pub use crate::os::files::{absolute, program};
use crate::os::{self, Errno, Scratch};
use crate::profile;
use crate::saving::{self, Lock};
use crate::source;
use cachewise_learn::Way;
use cachewise_learn::section::{
    MAX_BYTES, Module, Section, SectionError, Site, VERSION, write_end,
};
use cachewise_learn::sites::{Key, SITES, Sites};
use cachewise_learn::trial::Outcome;
use core::ffi::CStr;
use core::fmt::{self, Write as _};

/// Linux's PATH_MAX.
const PATH_BYTES: usize = 4096;
/// Milliseconds to wait for others that save at the same moment, where a damaged file is to go.
const PATIENCE: u32 = 500;
/// Modules are numbered from here on.
const FIRST_MODULE: u32 = 0x1000;

/// Where sites lie, by the number in their [`Place`](cachewise_learn::sites::Place).
pub trait Modules {
    /// How many have a number.
    fn count(&self) -> u32;
    /// What identifies a module: a word.
    fn id(&self, number: u32) -> Option<&str>;
    /// The rest of its line.
    fn path(&self, number: u32) -> &str;
    /// Whether a module of the section is this one.
    fn is(&self, number: u32, module: &Module<'_>) -> bool {
        self.id(number) == Some(module.id)
    }
}

/// What an earlier process, or another one, has left in the file.
fn there(bytes: &[u8]) -> Result<Option<Section<'_>>, Problem> {
    // Nothing in it, as a crash may leave a file whose length was kept and whose content was not.
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let section = Section::sealed(bytes).map_err(Problem::Section)?;
    if is_this_cpu(&section) { Ok(Some(section)) } else { Err(Problem::ForeignCpu) }
}

/// Why a file cannot be used, or was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Nobody said which, and there is no user's directory.
    NoPlace,
    /// The system said so.
    System(SystemError),
    /// It is no section.
    Section(SectionError),
    /// It is another CPU's.
    ForeignCpu,
    /// This process has more privilege than its caller, who must not choose its files.
    Privileged,
    /// Others were saving all the while.
    Busy,
    /// What there is to say is more than a section holds.
    TooMuch,
}

/// A file that is not used, and why; no path where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The file.
    pub path: Option<&'static CStr>,
    /// What is wrong.
    pub problem: Problem,
}

/// A path in a line for people: what does not print is shown as `?`.
pub struct Named<'a>(pub &'a CStr);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printable(self.0.to_bytes()).fmt(f)
    }
}

/// Bytes that others chose, in a line for people: what does not print is shown as `?`.
pub struct Printable<'a>(pub &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        source::write_path(f, self.0)
    }
}

/// What is said once of a file that was damaged.
pub struct SetAside(pub Problem);

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; now FILE.damaged, and nothing is known of the program", self.0)
    }
}

/// What the system said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemError(Errno);

impl Problem {
    /// Whether the file is a section that nobody can use any more.
    fn is_damage(self) -> bool {
        match self {
            Problem::Section(SectionError::OtherVersion(version)) => version < VERSION,
            Problem::Section(SectionError::NotASection | SectionError::TooLarge) => false,
            Problem::Section(_) => true,
            _ => false,
        }
    }
}

impl From<Errno> for Problem {
    fn from(error: Errno) -> Problem {
        Problem::System(SystemError(error))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoPlace => f.write_str("found no name of a file and no HOME"),
            Problem::System(SystemError(why)) => write!(f, "found {why}, accepted a usable file"),
            Problem::Section(why) => fmt::Display::fmt(why, f),
            Problem::ForeignCpu => f.write_str("line cpu: found another CPU than this one"),
            Problem::Privileged => f.write_str("this program has more privilege than its caller"),
            Problem::Busy => f.write_str("locked by other processes all the while"),
            Problem::TooMuch => write!(f, "more than {MAX_BYTES} bytes to be written"),
        }
    }
}

/// The file, and what it said at the start.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    path: &'static CStr,
    /// Nobody named it: its directories may have to be made.
    users: bool,
    section: Option<Section<'static>>,
    sites: &'static [Site],
    /// What was wrong with the file that was set aside.
    set_aside: Option<Problem>,
}

impl Store {
    /// Reads the file that is named, or the user's for this program. One that is not there is
    /// empty. Who is not `learning` gets the outcomes without their evidence: every process of a
    /// program that follows decisions waits for this.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(named: Option<&CStr>, learning: bool) -> Result<Store, Refused> {
        let nowhere = |problem| Refused { path: None, problem };
        let buffer = Scratch::new(PATH_BYTES).map_err(|why| nowhere(why.into()))?.leak();
        let path = match named {
            Some(path) => files::absolute(path, buffer),
            None => user_path(buffer),
        };
        let path = path.ok_or(nowhere(Problem::NoPlace))?;
        Store::read(path, named.is_none(), learning)
            .map_err(|problem| Refused { path: Some(path), problem })
    }

    fn read(path: &'static CStr, users: bool, learning: bool) -> Result<Store, Problem> {
        let mut store = Store { path, users, section: None, sites: &[], set_aside: None };
        if learning {
            saving::may_replace(path)?;
        }
        let text = Scratch::new(MAX_BYTES + 1)?.leak();
        let length = match files::read_file(path, text) {
            Ok(length) => length,
            Err(why) if why.is_missing() => return Ok(store),
            Err(why) => return Err(why.into()),
        };
        let text: &'static [u8] = text;
        match there(text.get(..length).unwrap_or(&[])) {
            Ok(section) => store.section = section,
            Err(why) if why.is_damage() => {
                store.set_aside()?;
                store.set_aside = Some(why);
            }
            Err(why) => return Err(why),
        }
        let Some(section) = &store.section else { return Ok(store) };
        store.sites = match learning {
            true => listed(section, section.sites())?.leak(),
            false => listed(section, section.outcomes())?.leak(),
        };
        Ok(store)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &'static CStr {
        self.path
    }

    /// What was wrong with the file that was there, and is now `FILE.damaged`.
    #[must_use]
    pub fn was_damaged(&self) -> Option<Problem> {
        self.set_aside
    }

    /// Puts a damaged file out of the way, unless another process has done so meanwhile.
    fn set_aside(&self) -> Result<(), Problem> {
        let _held = lock(self.path, PATIENCE)?;
        let mut text = Scratch::new(MAX_BYTES + 1)?;
        let length = files::read_file(self.path, text.bytes()).unwrap_or(0);
        if there(text.bytes().get(..length).unwrap_or(&[])).is_err_and(Problem::is_damage) {
            let mut name = Scratch::new(PATH_BYTES + 32)?;
            let aside = beside(self.path, ".damaged", name.bytes()).ok_or(Problem::NoPlace)?;
            saving::set_aside(self.path, aside)?;
        }
        Ok(())
    }

    /// Whether there is any site to follow: one that was decided for a way that the profile in
    /// force does not go by itself.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.sites.iter().any(|site| match site.left.outcome {
            Outcome::Decided(way) => {
                let least = 1_u64.checked_shl(site.octave).unwrap_or(u64::MAX);
                let most = least.saturating_mul(2).saturating_sub(1);
                hooks::differs(site.operation as usize, least, most, way == Way::NonTemporal)
            }
            Outcome::CannotTell(_) => false,
        })
    }

    /// What an earlier run left of a site.
    pub fn known(
        &self,
        modules: &dyn Modules,
        number: u32,
        key: Key,
        offset: u64,
    ) -> Option<&Site> {
        let mut all = self.section.as_ref()?.modules();
        let module = all.find(|module| modules.is(number, module))?.number;
        self.sites.iter().find(|site| {
            (site.module, site.offset, site.operation, site.octave)
                == (module, offset, key.operation(), key.octave())
        })
    }

    /// Merges what this process knows into the file, after waiting for so many milliseconds at most
    /// where others do the same.
    ///
    /// # Errors
    /// Why that was not possible; the file is as it was then.
    pub fn save(
        &self,
        sites: &Sites,
        epoch: u32,
        modules: &dyn Modules,
        patience: u32,
    ) -> Result<(), Problem> {
        if sites.slots().all(|slot| slot.key().is_none()) {
            // Not even a lock: the first who makes one owns it.
            return Ok(());
        }
        if self.users {
            self.make_directories(Scratch::new(PATH_BYTES)?.bytes());
        }
        let held = lock(self.path, patience)?;
        self.merge(&held, sites, epoch, modules)
    }

    /// The user's configuration, the profile's directory, and that of the programs in it; failure
    /// is told by what comes after.
    fn make_directories(&self, path: &mut [u8]) {
        let bytes = self.path.to_bytes();
        let Some(copy) = path.get_mut(..bytes.len()) else { return };
        copy.copy_from_slice(bytes);
        let slashes = (1..bytes.len()).rev().filter(|at| bytes.get(*at) == Some(&b'/'));
        let mut levels = [0; 3];
        for (level, at) in levels.iter_mut().rev().zip(slashes) {
            *level = at;
        }
        for level in levels.into_iter().filter(|at| *at > 0) {
            files::make_directory(path, level);
        }
    }

    fn merge(
        &self,
        held: &Lock,
        sites: &Sites,
        epoch: u32,
        modules: &dyn Modules,
    ) -> Result<(), Problem> {
        let mut read = Scratch::new(MAX_BYTES + 1)?;
        let length = match files::read_file(self.path, read.bytes()) {
            Ok(length) => length,
            Err(why) if why.is_missing() => 0,
            Err(why) => return Err(why.into()),
        };
        let section = match there(read.bytes().get(..length).unwrap_or(&[])) {
            // Damaged since the start: what this process has met is better than nothing.
            Err(why) if why.is_damage() => None,
            read => read?,
        };
        let there = section.as_ref().map(|section| listed(section, section.sites())).transpose()?;
        let there = there.as_ref().map_or(&[][..], List::items);
        let numbers = Numbers::new(section.as_ref(), modules);
        let mut here = List::<Site>::new(SITES)?;
        for slot in sites.slots() {
            let Some(key) = slot.key() else { continue };
            let Some(state) = slot.state(epoch) else { continue };
            let (Some(place), Some(trial)) = (state.place, state.trial) else { continue };
            if modules.id(place.module).is_none() {
                continue;
            }
            here.push(Site {
                module: numbers.of(place.module),
                offset: place.offset,
                operation: key.operation(),
                octave: key.octave(),
                bytes: state.bytes,
                usual: state.usual,
                left: trial.left(),
            });
        }
        let here = here.items();
        if here.is_empty() {
            return Ok(());
        }
        let mut out = Scratch::new(MAX_BYTES + 1)?;
        let mut text = Cursor::new(out.bytes());
        write(&mut text, section.as_ref(), there, here, &numbers)
            .map_err(|fmt::Error| Problem::TooMuch)?;
        if text.written().len() > MAX_BYTES {
            return Err(Problem::TooMuch);
        }
        Ok(saving::replace(held, self.path, text.written())?)
    }
}

/// The lock of a program's file.
fn lock(path: &CStr, patience: u32) -> Result<Lock, Problem> {
    let mut name = Scratch::new(PATH_BYTES + 32)?;
    let name = beside(path, ".lock", name.bytes()).ok_or(Problem::NoPlace)?;
    Lock::take(name, patience)?.ok_or(Problem::Busy)
}

/// Takes a program's file away, with its lock and what was set aside, unless somebody saves all the
/// while.
///
/// # Errors
/// Why that was not possible.
pub fn forget(path: &CStr) -> Result<(), Problem> {
    let held = lock(path, PATIENCE)?;
    let mut name = Scratch::new(PATH_BYTES + 32)?;
    let damaged = beside(path, ".damaged", name.bytes()).ok_or(Problem::NoPlace)?;
    for file in [path, damaged] {
        match files::remove(file) {
            Err(why) if !why.is_missing() => return Err(why.into()),
            _ => {}
        }
    }
    let name = beside(path, ".lock", name.bytes()).ok_or(Problem::NoPlace)?;
    held.remove(name);
    Ok(())
}

/// The numbers of this process's modules in the file: those they have there, or new ones.
struct Numbers<'a> {
    modules: &'a dyn Modules,
    section: Option<&'a Section<'a>>,
    /// Above all that the file has.
    free: u32,
}

impl<'a> Numbers<'a> {
    fn new(section: Option<&'a Section<'a>>, modules: &'a dyn Modules) -> Numbers<'a> {
        let there = section.into_iter().flat_map(Section::modules).map(|module| module.number);
        let free = there.max().map_or(FIRST_MODULE, |most| most.wrapping_add(1));
        Numbers { modules, section, free }
    }

    fn kept(&self, number: u32) -> Option<u32> {
        let mut there = self.section?.modules();
        Some(there.find(|module| self.modules.is(number, module))?.number)
    }

    fn of(&self, number: u32) -> u32 {
        // The number under which it was met first: two threads may have met it at once.
        let same = |other: &u32| {
            self.modules.id(*other).is_some_and(|id| {
                let path = self.modules.path(*other);
                self.modules.is(number, &Module { number: *other, id, path })
            })
        };
        let first = || (0..number).find(same).unwrap_or(number);
        self.kept(number).unwrap_or_else(|| self.free.wrapping_add(first()))
    }
}

/// Writes a section: what the file had, and what is known better here.
fn write(
    text: &mut Cursor<'_>,
    section: Option<&Section<'_>>,
    there: &[Site],
    here: &[Site],
    numbers: &Numbers<'_>,
) -> fmt::Result {
    let same = |a: &Site, b: &Site| a.module == b.module && a.same_calls(b);
    writeln!(text, "cachewise-program {VERSION}")?;
    let mut path = [0; 1024];
    let program = files::program(&mut path);
    match section {
        Some(section) => writeln!(text, "program {}", section.text("program"))?,
        None => writeln!(text, "program {}", Printable(program))?,
    }
    writeln!(text, "cpu {}", Signature::detect())?;
    writeln!(text, "written {}", files::seconds_since_1970())?;
    for module in section.into_iter().flat_map(Section::modules) {
        writeln!(text, "module {} {} {}", module.number, module.id, module.path)?;
    }
    for number in 0..numbers.modules.count() {
        let Some(id) = numbers.modules.id(number) else { continue };
        let own = numbers.of(number);
        // Not one that was there, nor one met twice.
        if own == numbers.free.wrapping_add(number) && here.iter().any(|site| site.module == own) {
            writeln!(text, "module {own} {id} {}", numbers.modules.path(number))?;
        }
    }
    for site in there {
        let newer = here.iter().any(|own| same(own, site) && own.left.calls > site.left.calls);
        if !newer {
            site.write(text)?;
        }
    }
    for own in here {
        let older = there.iter().any(|site| same(own, site) && own.left.calls <= site.left.calls);
        if !older {
            own.write(text)?;
        }
    }
    let mut end = [0; 64];
    let mut end = Cursor::new(&mut end);
    write_end(&mut end, text.written())?;
    text.push(end.written())
}

fn listed(section: &Section<'_>, sites: impl Iterator<Item = Site>) -> Result<List<Site>, Errno> {
    let mut list = List::new(section.count())?;
    for site in sites {
        list.push(site);
    }
    Ok(list)
}

/// Vendor, family and model are this CPU's; the stepping may differ.
fn is_this_cpu(section: &Section<'_>) -> bool {
    let mut own = [0; 64];
    let mut own = Cursor::new(&mut own);
    let _ = write!(own, "{}", Signature::detect());
    let own = core::str::from_utf8(own.written()).unwrap_or("");
    let words = |text| str::split(text, ' ').take(3);
    words(section.text("cpu")).eq(words(own))
}

/// The path with something after it.
fn beside<'a>(path: &CStr, suffix: &str, into: &'a mut [u8]) -> Option<&'a CStr> {
    let mut text = Cursor::new(into);
    for part in [path.to_bytes(), suffix.as_bytes(), b"\0"] {
        text.push(part).ok()?;
    }
    CStr::from_bytes_until_nul(into).ok()
}

/// The user's file for this program, beside the user's profile.
fn user_path(into: &mut [u8]) -> Option<&CStr> {
    let absolute = |name| os::variable(name).filter(|path| path.to_bytes().starts_with(b"/"));
    let mut text = Cursor::new(into);
    match absolute(c"XDG_CONFIG_HOME") {
        Some(config) => text.push(config.to_bytes()).ok()?,
        None => {
            text.push(absolute(c"HOME")?.to_bytes()).ok()?;
            text.push(b"/.config").ok()?;
        }
    }
    text.push(b"/cachewise/").ok()?;
    let mut file = [0; 96];
    let mut file = Cursor::new(&mut file);
    profile::write_file_name(&mut file, &Signature::detect()).ok()?;
    text.push(file.written().strip_suffix(b".profile")?).ok()?;
    text.push(b".programs/").ok()?;
    let mut path = Scratch::new(PATH_BYTES).ok()?;
    write_name(&mut text, files::executed(path.bytes())).ok()?;
    text.push(b".program\0").ok()?;
    CStr::from_bytes_until_nul(into).ok()
}

/// The name that what is learned of a program goes by: that of the file that was executed, behind
/// all links, in which what does not print is `_`, and so is a leading dot. Of a script it is the
/// script's: the kernel executes its interpreter, but was asked for the script.
///
/// # Errors
/// Those of the writer.
pub fn write_name(out: &mut dyn fmt::Write, path: &[u8]) -> fmt::Result {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(b"");
    let mut first = true;
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            let hidden = character.is_control() || first && character == '.';
            out.write_char(if hidden { '_' } else { character })?;
            first = false;
        }
        if !chunk.invalid().is_empty() {
            out.write_char('_')?;
            first = false;
        }
    }
    Ok(())
}
