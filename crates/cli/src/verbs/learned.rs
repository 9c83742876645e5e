//! What was learned of programs: a file each, beside the machine's profile; with names for people.

use anyhow::{Context as _, bail};
use cachewise::profile::user_path;
use cachewise_learn::section::{Section, Site};
use cachewise_report::programs::{Program, SiteLine};
use object::read::{Object as _, ObjectSymbol as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

const EXTENSION: &str = "program";

/// The directory of the programs' sections: the profile's name with `.programs`, so that each
/// machine's, and each named profile's, are its own.
pub fn directory(profile: Option<&Path>) -> anyhow::Result<PathBuf> {
    let profile = match profile {
        Some(named) => {
            fs::canonicalize(named).with_context(|| format!("--profile {}", named.display()))?
        }
        None => user_path().context("neither XDG_CONFIG_HOME nor HOME is an absolute path")?,
    };
    Ok(profile.with_extension("programs"))
}

/// A program's name: that of its file.
pub fn name_of(program: &Path) -> String {
    program.file_name().unwrap_or(OsStr::new("")).to_string_lossy().into_owned()
}

/// The file of a program's section.
pub fn place(name: &str, profile: Option<&Path>) -> anyhow::Result<PathBuf> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0', '\n']) {
        bail!("program: found {name:?}, accepted a name without a slash or a leading dot");
    }
    Ok(directory(profile)?.join(format!("{name}.{EXTENSION}")))
}

/// The names of all programs something was learned of.
pub fn names(profile: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let directory = directory(profile)?;
    let mut names = Vec::new();
    match fs::read_dir(&directory) {
        Ok(entries) => {
            for entry in entries {
                let path = entry?.path();
                if path.extension() == Some(OsStr::new(EXTENSION)) {
                    names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
                }
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| directory.display().to_string()),
    }
    names.sort();
    Ok(names)
}

/// The file of a program that something was learned of.
pub fn existing(name: &str, profile: Option<&Path>) -> anyhow::Result<PathBuf> {
    let place = place(name, profile)?;
    if !place.exists() {
        let known = names(profile)?;
        let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        bail!("nothing was learned of \"{name}\"; programs: {known}");
    }
    Ok(place)
}

/// Reads a program's section, with the names of its functions where their files are still there.
pub fn read(name: &str, place: &Path) -> anyhow::Result<Program> {
    let bytes = match fs::read(place) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            existing_of(name, place)?;
            return Err(error).with_context(|| place.display().to_string());
        }
        Err(error) => return Err(error).with_context(|| place.display().to_string()),
    };
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

/// The error for a program nothing is known of, with those that something is known of.
fn existing_of(name: &str, place: &Path) -> anyhow::Result<()> {
    let entries = place.parent().and_then(|directory| fs::read_dir(directory).ok());
    let mut known: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new(EXTENSION)))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    known.sort();
    let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
    bail!("nothing was learned of \"{name}\"; programs: {known}")
}

/// A program's sites as JSON, for who wants to count with them; nothing is proved of it yet.
pub fn as_json(program: &Program) -> Value {
    let sites = program.sites.iter().map(|line| {
        let Site { operation, octave, bytes, usual, left, .. } = line.site;
        let [temporal, non_temporal] = left.evidence.costs;
        json!({
            "module": line.module,
            "function": line.function,
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
    let module = modules.get(&site.module);
    if let Some(Symbols { name, given: true, .. }) = module {
        return SiteLine { module: "(named)".to_owned(), function: name.clone(), site };
    }
    let function = module.and_then(|symbols| symbols.at(site.offset));
    SiteLine {
        module: module.map_or("?".to_owned(), |symbols| symbols.name.clone()),
        function: function.unwrap_or_else(|| format!("{:#x}", site.offset)),
        site,
    }
}

/// A module's functions by address.
struct Symbols {
    name: String,
    /// The program named the site itself (`cachewise::site!`, `CW_SITE`).
    given: bool,
    functions: BTreeMap<u64, (u64, String)>,
}

impl Symbols {
    /// Empty where the file is gone, another one, or none that has names.
    fn of(path: &Path, id: &str) -> Symbols {
        if id == "site" {
            let name = path.to_string_lossy().into_owned();
            return Symbols { name, given: true, functions: BTreeMap::new() };
        }
        let functions = functions(path, id).unwrap_or_default();
        Symbols { name: name_of(path), given: false, functions }
    }

    /// The function that a return address lies in: the call is before it.
    fn at(&self, offset: u64) -> Option<String> {
        let (start, (size, name)) = self.functions.range(..offset).next_back()?;
        let inside = *size == 0 || offset <= start + size;
        inside.then(|| format!("{name}+{:#x}", offset - start))
    }
}

fn functions(path: &Path, id: &str) -> Option<BTreeMap<u64, (u64, String)>> {
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let found = file
        .build_id()
        .ok()
        .flatten()
        .map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    if !id.starts_with('x') && found.as_deref() != Some(id) {
        return None;
    }
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols
        .filter(|symbol| symbol.is_definition() && symbol.kind() == object::SymbolKind::Text)
        .filter_map(|symbol| {
            let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
            Some((symbol.address(), (symbol.size(), name)))
        });
    Some(functions.collect())
}
