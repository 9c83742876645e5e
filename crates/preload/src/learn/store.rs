//! The program's section of the profile: read at the start, merged and written at the end.
//!
//! Several processes may share a file. Each holds `FILE.lock` while it reads what others have saved
//! meanwhile, keeps of every site what has seen more calls, and puts a new file in place of the old
//! one. A file that cannot be read is left alone, and so is one of another CPU.

use super::modules::Modules;
use crate::os;
use crate::statistics::Text;
use cachewise::cpu::Signature;
use cachewise::profile;
use cachewise_learn::section::{MAX_BYTES, Section, SectionError, Site, VERSION, write_end};
use cachewise_learn::sites::{Key, SITES, Sites};
use cachewise_learn::trial::Outcome;
use core::ffi::CStr;
use core::fmt::{self, Write as _};

/// Linux's PATH_MAX.
const PATH_BYTES: usize = 4096;
/// Milliseconds to wait for others that save at the same moment, ten at a time.
const PATIENCE: u32 = 500;

/// Why a file cannot be used.
pub(super) enum Problem {
    /// Nobody said which, and there is no user's directory.
    NoPlace,
    Unreadable(os::Failed),
    Section(SectionError),
    ForeignCpu,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoPlace => f.write_str("found no name of a file and no HOME"),
            Problem::Unreadable(why) => write!(f, "found {why}, accepted a readable file"),
            Problem::Section(why) => why.fmt(f),
            Problem::ForeignCpu => f.write_str("line cpu: found another CPU than this one"),
        }
    }
}

/// The file, and what it said at the start.
pub(super) struct Store {
    path: &'static CStr,
    section: Option<Section<'static>>,
    sites: &'static [Site],
}

impl Store {
    pub(super) fn open(named: Option<&CStr>, learning: bool) -> Result<Store, Problem> {
        let buffer = os::buffer(PATH_BYTES).ok_or(Problem::NoPlace)?;
        let path = match named {
            Some(path) => os::absolute(path, buffer).ok_or(Problem::NoPlace)?,
            None => user_path(buffer, learning).ok_or(Problem::NoPlace)?,
        };
        let mut store = Store { path, section: None, sites: &[] };
        let Some(text) = os::Mapped::new(MAX_BYTES + 1) else { return Err(Problem::NoPlace) };
        let text = text.leak();
        let length = match os::read_file(path, text) {
            Ok(length) => length,
            Err(why) if why.is_missing() => return Ok(store),
            Err(why) => return Err(Problem::Unreadable(why)),
        };
        let text: &'static [u8] = text;
        let section =
            Section::parse(text.get(..length).unwrap_or(&[])).map_err(Problem::Section)?;
        if !is_this_cpu(&section) {
            return Err(Problem::ForeignCpu);
        }
        store.section = Some(section);
        store.sites = parsed(&section).ok_or(Problem::NoPlace)?.leak();
        Ok(store)
    }

    /// Whether there is any site to follow.
    pub(super) fn decides(&self) -> bool {
        self.sites.iter().any(|site| matches!(site.left.outcome, Outcome::Decided(_)))
    }

    /// What an earlier run left of a site.
    pub(super) fn known(&self, id: &str, key: Key, offset: u64) -> Option<&Site> {
        let module = self.section?.modules().find(|module| module.id == id)?.number;
        self.sites.iter().find(|site| {
            (site.module, site.offset, site.operation, site.octave)
                == (module, offset, key.operation(), key.octave())
        })
    }

    /// Merges what this process knows into the file. Failure is silent but for what it leaves
    /// undone: there is nobody to tell in the middle of a program.
    pub(super) fn save(&self, sites: &Sites, epoch: u32, modules: &Modules) {
        let mut name = [0; PATH_BYTES + 32];
        let Some(lock) = beside(self.path, ".lock", &mut name) else { return };
        let Ok(lock) = os::open_to_append(lock) else { return };
        if os::lock(lock, PATIENCE) {
            let _ = self.merge(sites, epoch, modules);
        }
        os::close(lock);
    }

    fn merge(&self, sites: &Sites, epoch: u32, modules: &Modules) -> Option<()> {
        let mut read = os::Mapped::new(MAX_BYTES + 1)?;
        let length = match os::read_file(self.path, read.bytes()) {
            Ok(length) => length,
            Err(why) if why.is_missing() => 0,
            Err(_) => return None,
        };
        let section = match read.bytes().get(..length)? {
            [] => None,
            text => Some(Section::parse(text).ok().filter(is_this_cpu)?),
        };
        let there = section.as_ref().and_then(parsed);
        let there = there.as_ref().map_or(&[][..], os::List::items);
        let mut here = os::List::<Site>::new(SITES)?;
        let module_of = |number: u32| {
            let id = modules.id(number)?;
            let kept = section.and_then(|section| {
                section.modules().find(|module| module.id == id).map(|module| module.number)
            });
            Some(kept.unwrap_or(0x1000 + first_of(modules, number)))
        };
        for slot in sites.slots() {
            let Some(key) = slot.key() else { continue };
            let Some(state) = slot.state(epoch) else { continue };
            let (Some(place), Some(trial)) = (state.place, state.trial) else { continue };
            let Some(module) = module_of(place.module) else { continue };
            here.push(Site {
                module,
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
            return Some(());
        }
        let same = |a: &Site, b: &Site| a.module == b.module && a.same_calls(b);
        let mut out = os::Mapped::new(MAX_BYTES + 1)?;
        let mut text = Text::new(out.bytes());
        writeln!(text, "cachewise-program {VERSION}").ok()?;
        let mut path = [0; 1024];
        let program = os::program(&mut path);
        let program = core::str::from_utf8(program).unwrap_or("?");
        let program = section.as_ref().map_or(program, |section| section.text("program"));
        writeln!(text, "program {program}").ok()?;
        writeln!(text, "cpu {}", Signature::detect()).ok()?;
        writeln!(text, "written {}", os::seconds_since_1970()).ok()?;
        for module in section.iter().flat_map(Section::modules) {
            writeln!(text, "module {} {} {}", module.number, module.id, module.path).ok()?;
        }
        for number in 0..modules.count() {
            let Some(id) = modules.id(number) else { continue };
            let new = module_of(number) == Some(0x1000 + number);
            if new && here.iter().any(|site| site.module == 0x1000 + number) {
                let path = modules.path(number);
                writeln!(text, "module {} {id} {path}", 0x1000 + number).ok()?;
            }
        }
        for site in there {
            let newer = here.iter().any(|own| same(own, site) && own.left.calls > site.left.calls);
            if !newer {
                site.write(&mut text).ok()?;
            }
        }
        for own in here {
            let older =
                there.iter().any(|site| same(own, site) && own.left.calls <= site.left.calls);
            if !older {
                own.write(&mut text).ok()?;
            }
        }
        let mut end = [0; 64];
        let mut end = Text::new(&mut end);
        write_end(&mut end, text.written()).ok()?;
        text.write_str(core::str::from_utf8(end.written()).ok()?).ok()?;
        if text.written().len() > MAX_BYTES {
            // It did not fit.
            return None;
        }
        let mut name = [0; PATH_BYTES + 32];
        let mut suffix = [0; 24];
        let mut suffix = Text::new(&mut suffix);
        write!(suffix, ".{}", os::process_id()).ok()?;
        let new = beside(self.path, core::str::from_utf8(suffix.written()).ok()?, &mut name)?;
        os::replace(self.path, new, text.written())
    }
}

/// The number under which a module was met first: two threads may have met it at once.
fn first_of(modules: &Modules, number: u32) -> u32 {
    let id = modules.id(number);
    (0..number).find(|other| modules.id(*other) == id).unwrap_or(number)
}

fn parsed(section: &Section<'_>) -> Option<os::List<Site>> {
    let mut list = os::List::new(section.sites().count().max(1))?;
    for site in section.sites() {
        list.push(site);
    }
    Some(list)
}

/// Vendor, family and model are this CPU's; the stepping may differ.
fn is_this_cpu(section: &Section<'_>) -> bool {
    let mut own = [0; 64];
    let mut own = Text::new(&mut own);
    let _ = write!(own, "{}", Signature::detect());
    let own = core::str::from_utf8(own.written()).unwrap_or("");
    let words = |text| str::split(text, ' ').take(3);
    words(section.text("cpu")).eq(words(own))
}

/// The path with something after it.
fn beside<'a>(path: &CStr, suffix: &str, into: &'a mut [u8]) -> Option<&'a CStr> {
    let mut text = Text::new(into);
    text.push(path.to_bytes());
    text.push(suffix.as_bytes());
    text.push(b"\0");
    CStr::from_bytes_until_nul(into).ok()
}

/// The user's file for this program, beside the user's profile: its directory and, where it is to be
/// written, those above it are made.
fn user_path(into: &mut [u8], make: bool) -> Option<&CStr> {
    let absolute = |name| os::variable(name).filter(|path| path.to_bytes().starts_with(b"/"));
    let mut text = Text::new(into);
    match absolute(c"XDG_CONFIG_HOME") {
        Some(config) => text.push(config.to_bytes()),
        None => {
            text.push(absolute(c"HOME")?.to_bytes());
            text.push(b"/.config");
        }
    }
    let mut levels = [text.written().len(), 0, 0];
    text.push(b"/cachewise");
    levels[1] = text.written().len();
    text.push(b"/");
    let mut file = [0; 96];
    let mut file = Text::new(&mut file);
    profile::write_file_name(&mut file, &Signature::detect()).ok()?;
    text.push(file.written().strip_suffix(b".profile")?);
    text.push(b".programs");
    levels[2] = text.written().len();
    text.push(b"/");
    let mut path = [0; 1024];
    let program = os::program(&mut path);
    text.push(program.rsplit(|byte| *byte == b'/').next()?);
    text.push(b".program\0");
    if make {
        for level in levels {
            os::make_directory(into, level);
        }
    }
    CStr::from_bytes_until_nul(into).ok()
}
