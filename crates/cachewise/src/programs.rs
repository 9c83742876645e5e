//! A program's section of the profile: read at the start, merged and written at the end.
//!
//! Not for use by programs; the preload library's sites and [`crate::Site`]'s are kept by it.
//!
//! Several processes may share a file. Each holds `FILE.lock` while it reads what others have saved
//! meanwhile, keeps of every site what has seen more calls, and puts a new file in place of the old
//! one. A file that cannot be read is left alone, and so is one of another CPU.

use crate::cpu::Signature;
use crate::cursor::Cursor;
use crate::large;
use crate::os::files::{self, List};
/// Paths without an allocation.
pub use crate::os::files::{absolute, program};
use crate::os::{self, Errno, Scratch};
use crate::profile;
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
/// Milliseconds to wait for others that save at the same moment, ten at a time.
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

/// What the system said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemError(Errno);

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
            Problem::Section(why) => why.fmt(f),
            Problem::ForeignCpu => f.write_str("line cpu: found another CPU than this one"),
            Problem::Privileged => f.write_str("this program has more privilege than its caller"),
            Problem::Busy => f.write_str("locked by other processes for half a second"),
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
}

impl Store {
    /// Reads the file that is named, or the user's for this program. One that is not there is empty.
    /// Who is not `learning` gets the outcomes without their evidence: every process of a program that
    /// follows decisions waits for this.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(named: Option<&CStr>, learning: bool) -> Result<Store, Problem> {
        let buffer = Scratch::new(PATH_BYTES)?.leak();
        let path = match named {
            Some(path) => files::absolute(path, buffer).ok_or(Problem::NoPlace)?,
            None => user_path(buffer).ok_or(Problem::NoPlace)?,
        };
        let mut store = Store { path, users: named.is_none(), section: None, sites: &[] };
        let text = Scratch::new(MAX_BYTES + 1)?.leak();
        let length = match files::read_file(path, text) {
            Ok(length) => length,
            Err(why) if why.is_missing() => return Ok(store),
            Err(why) => return Err(why.into()),
        };
        let text: &'static [u8] = text;
        let section =
            Section::sealed(text.get(..length).unwrap_or(&[])).map_err(Problem::Section)?;
        if !is_this_cpu(&section) {
            return Err(Problem::ForeignCpu);
        }
        store.section = Some(section);
        store.sites = match learning {
            true => listed(&section, section.sites())?.leak(),
            false => listed(&section, section.outcomes())?.leak(),
        };
        Ok(store)
    }

    /// Whether there is any site to follow: one that was decided for a way that the profile in force
    /// does not go by itself.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.sites.iter().any(|site| match site.left.outcome {
            Outcome::Decided(way) => {
                let least = 1_u64.checked_shl(site.octave).unwrap_or(u64::MAX);
                let most = least.saturating_mul(2).saturating_sub(1);
                large::differs(site.operation as usize, least, most, way == Way::NonTemporal)
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

    /// Merges what this process knows into the file.
    ///
    /// # Errors
    /// Why that was not possible; the file is as it was then.
    pub fn save(&self, sites: &Sites, epoch: u32, modules: &dyn Modules) -> Result<(), Problem> {
        if sites.slots().all(|slot| slot.key().is_none()) {
            // Not even a lock: the first who makes one owns it.
            return Ok(());
        }
        let mut name = Scratch::new(PATH_BYTES + 32)?;
        if self.users {
            self.make_directories(name.bytes());
        }
        let lock = beside(self.path, ".lock", name.bytes()).ok_or(Problem::NoPlace)?;
        let Some(lock) = files::lock(lock, PATIENCE)? else { return Err(Problem::Busy) };
        let merged = self.merge(sites, epoch, modules);
        drop(lock);
        merged
    }

    /// The user's configuration, the profile's directory, and that of the programs in it; failure is
    /// told by what comes after.
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

    fn merge(&self, sites: &Sites, epoch: u32, modules: &dyn Modules) -> Result<(), Problem> {
        let mut read = Scratch::new(MAX_BYTES + 1)?;
        let length = match files::read_file(self.path, read.bytes()) {
            Ok(length) => length,
            Err(why) if why.is_missing() => 0,
            Err(why) => return Err(why.into()),
        };
        let section = match read.bytes().get(..length).unwrap_or(&[]) {
            [] => None,
            text => Some(Section::parse(text).map_err(Problem::Section)?),
        };
        if !section.as_ref().is_none_or(is_this_cpu) {
            return Err(Problem::ForeignCpu);
        }
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
        let mut name = Scratch::new(PATH_BYTES + 32)?;
        let new = beside(self.path, ".new", name.bytes()).ok_or(Problem::NoPlace)?;
        Ok(files::replace(self.path, new, text.written())?)
    }
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
    let program = core::str::from_utf8(files::program(&mut path)).unwrap_or("?");
    writeln!(text, "program {}", section.map_or(program, |section| section.text("program")))?;
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
    let mut path = [0; 1024];
    let program = files::program(&mut path);
    text.push(program.rsplit(|byte| *byte == b'/').next()?).ok()?;
    text.push(b".program\0").ok()?;
    CStr::from_bytes_until_nul(into).ok()
}
