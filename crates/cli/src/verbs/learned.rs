//! What was learned of programs: a file each, beside the machine's profile; with names for people.

use anyhow::{Context as _, bail};
use cachewise::profile::{Profile, user_path};
use cachewise_learn::section::{MAX_BYTES, Section, Site};
use cachewise_report::programs::{Program, SiteLine};
use object::read::{Object as _, ObjectSymbol as _, ReadCache};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const EXTENSION: &str = "program";

/// The directory of the programs' sections: the profile's name with `.programs`, so that each
/// machine's, and each named profile's, are its own.
pub fn directory(profile: Option<&Path>) -> anyhow::Result<PathBuf> {
    let profile = match profile {
        Some(named) => canonical(named)?,
        None => user_path().context("neither XDG_CONFIG_HOME nor HOME is an absolute path")?,
    };
    Ok(profile.with_extension("programs"))
}

/// The profile that the option names, wherever a program looks for it from.
pub fn canonical(profile: &Path) -> anyhow::Result<PathBuf> {
    let named = || format!("--profile {}", profile.display());
    let path = fs::canonicalize(profile).with_context(named)?;
    Profile::read(&path).context("--profile")?;
    Ok(path)
}

/// The name that what is learned of a program goes by: that of its file, behind all links, as the
/// libraries have it.
pub fn name_of(program: &Path) -> String {
    let file = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let mut name = String::new();
    // Writing to a String cannot fail.
    let _ = cachewise::programs::write_name(&mut name, file.as_os_str().as_bytes());
    name
}

/// As a shell finds it: by `PATH` unless there is a slash in the name.
pub(super) fn find_program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 || name.is_absolute() || name.starts_with(".") {
        return name.exists().then(|| name.to_path_buf());
    }
    let executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?).map(|path| path.join(name)).find(executable)
}

/// The file of a program's section.
pub fn place(name: &str, profile: Option<&Path>) -> anyhow::Result<PathBuf> {
    let is_fit = |character: char| character != '/' && !character.is_control();
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_fit) {
        bail!("program: found {name:?}, accepted a name without a slash or a leading dot");
    }
    Ok(directory(profile)?.join(format!("{name}.{EXTENSION}")))
}

/// The names of all programs something was learned of.
pub fn names(profile: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let directory = directory(profile)?;
    let mut names = Vec::new();
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(names),
        listed => listed.with_context(|| directory.display().to_string())?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(EXTENSION)) {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// The name and the file of a program that something was learned of; it may be called as a shell
/// calls it, `python3` where that is a link.
pub fn existing(name: &str, profile: Option<&Path>) -> anyhow::Result<(String, PathBuf)> {
    let called = find_program(Path::new(name)).map(|program| name_of(&program));
    for name in [Some(name.to_owned()), called].into_iter().flatten() {
        if let Ok(place) = place(&name, profile)
            && place.exists()
        {
            return Ok((name, place));
        }
    }
    // What is wrong with the name comes first.
    if !place(name, profile)?.exists() {
        let known = names(profile)?;
        let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        bail!("nothing was learned of \"{name}\"; programs: {known}");
    }
    bail!("{name}: it came meanwhile: try again")
}

/// Reads a program's section, with the names of its functions where their files are still there.
pub fn read(name: &str, place: &Path) -> anyhow::Result<Program> {
    let mut bytes = Vec::new();
    regular(place)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .with_context(|| place.display().to_string())?;
    let section =
        Section::parse(&bytes).map_err(|error| anyhow::anyhow!("{}: {error}", place.display()))?;
    let modules: BTreeMap<u32, Symbols> = section
        .modules()
        .map(|module| (module.number, Symbols::of(Path::new(module.path), module.id)))
        .collect();
    let sites = section.sites().map(|site| named(site, &modules)).collect();
    let seconds = section.text("written").parse().ok();
    let written = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let written = written.map_or(String::new(), |time| format!("{time}, "));
    Ok(Program {
        name: name.to_owned(),
        written: format!("{written}{}, {}", section.text("program"), section.text("cpu")),
        sites,
        remarks: Vec::new(),
    })
}

/// Whether a file that cannot be read is a section all the same: damaged, cut short, or of an earlier
/// version. The library sets it aside, says so, and begins anew.
pub fn is_ours(place: &Path) -> bool {
    let mut begin = String::new();
    let read = regular(place).and_then(|file| file.take(17).read_to_string(&mut begin));
    read.is_ok() && (begin.is_empty() || begin == "cachewise-program")
}

/// Opens a file that is one: no pipe that never ends, and no device.
pub fn regular(path: &Path) -> std::io::Result<fs::File> {
    let check = |metadata: fs::Metadata| {
        let kind = metadata.file_type();
        let found = match () {
            () if kind.is_file() => return Ok(()),
            () if kind.is_dir() => "a directory",
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        Err(std::io::Error::other(format!("found {found}, accepted a regular file")))
    };
    // A socket cannot be opened, and another file may come meanwhile.
    check(fs::metadata(path)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// A program's sites as JSON, for who wants to count with them; nothing is proved of it yet.
pub fn as_json(program: &Program) -> Value {
    let sites = program.sites.iter().map(|line| {
        let Site { operation, octave, bytes, usual, left, .. } = line.site;
        let [temporal, non_temporal] = left.evidence.costs;
        json!({
            "module": line.module,
            "function": line.function,
            "path": line.path,
            "offset": line.site.offset,
            "operation": operation.name(),
            "octave": octave,
            "calls": left.calls,
            "bytes": bytes,
            "tried": left.explored,
            "reopened": left.reopened,
            "pairs": left.evidence.pairs(),
            "temporal_ns": { "mean": temporal.mean(), "error": temporal.error() },
            "non_temporal_ns": { "mean": non_temporal.mean(), "error": non_temporal.error() },
            "profile": usual.name(),
            "outcome": left.outcome.name(),
            "decision": line.decision(),
            "gain": line.gain().map(|[mid, low, high]| {
                json!({ "median": mid, "low": low, "high": high })
            }),
        })
    });
    json!({
        "program": program.name,
        "written": program.written,
        "sites": sites.collect::<Vec<_>>(),
        "proof": null,
    })
}

fn named(site: Site, modules: &BTreeMap<u32, Symbols>) -> SiteLine {
    let unknown = Symbols { module: "?".to_owned(), ..Symbols::default() };
    let symbols = modules.get(&site.module).unwrap_or(&unknown);
    let function = match (&symbols.given, symbols.at(site.offset)) {
        (Some(name), _) => name.clone(),
        // As statistics have it: what `addr2line` takes, and what people read.
        (None, Some(function)) => format!("{:#x} {function}", site.offset),
        (None, None) => format!("{:#x}", site.offset),
    };
    SiteLine { module: symbols.module.clone(), function, path: symbols.path.clone(), site }
}

/// A module's functions by address.
#[derive(Default)]
struct Symbols {
    module: String,
    path: String,
    /// The program named the site itself (`cachewise::site!`, `CW_SITE`).
    given: Option<String>,
    functions: BTreeMap<u64, (u64, String)>,
}

impl Symbols {
    /// Empty where the file is gone, another one, or none that has names.
    fn of(file: &Path, id: &str) -> Symbols {
        let path = file.to_string_lossy().into_owned();
        if id == "site" {
            let module = "(named)".to_owned();
            return Symbols { module, given: Some(path), ..Symbols::default() };
        }
        let functions = functions(file, id).unwrap_or_default();
        let module = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Symbols { module, path, given: None, functions }
    }

    /// The function that a return address lies in: the call is before it.
    fn at(&self, offset: u64) -> Option<String> {
        let (start, (size, name)) = self.functions.range(..offset).next_back()?;
        let inside = *size == 0 || offset <= start + size;
        inside.then(|| format!("{name}+{:#x}", offset - start))
    }
}

/// The functions of larger programs are looked for in vain.
const MOST_SYMBOLS: usize = 4_000_000;

fn functions(path: &Path, id: &str) -> Option<BTreeMap<u64, (u64, String)>> {
    // Of a file that a section names, which may be of any size, only what is asked for is read.
    let cache = ReadCache::new(regular(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let found = file.build_id().ok().flatten().map(hex);
    if !id.starts_with('x') && found.as_deref() != Some(id) {
        return None;
    }
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols
        .take(MOST_SYMBOLS)
        .filter(|symbol| symbol.is_definition() && symbol.kind() == object::SymbolKind::Text)
        .filter_map(|symbol| {
            let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
            Some((symbol.address(), (symbol.size(), name)))
        });
    Some(functions.collect())
}
