//! Files of a system: `tunables.conf`, and drop-ins for the units of single programs.

use crate::program as names;
use crate::{output, status};
use anyhow::{Context as _, bail};
use cachewise_advise::{lists, written};
use cachewise_measure::record;
use cachewise_measure::record::names::RECOMMENDED;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The name of our drop-in.
const DROP_IN: &str = "cachewise.conf";

/// Writes `tunables.conf` and systemd's drop-ins below a directory, `/etc` for this system: what pays for every program,
/// and what `advise` recommended for single ones.
pub fn write(
    directory: &Path,
    setting: Option<&str>,
    advice: &[PathBuf],
    found: u8,
) -> anyhow::Result<u8> {
    let mut sections = Vec::new();
    let mut files = Vec::new();
    for path in advice {
        let (program, variables) = recommended(path)?;
        if let Some((_, tunables)) = variables.iter().find(|(name, _)| name == "GLIBC_TUNABLES") {
            sections.push((program.clone(), tunables.clone()));
        }
        let set = unit_sets(directory, &program)?;
        let extended = variables.into_iter().map(|(name, value)| {
            let before = set.get(&name).map_or("", String::as_str);
            let value = lists::extended(&name, Some(before), &value);
            (name, value)
        });
        let extended: Vec<_> = extended.collect();
        let place = directory.join(format!("systemd/system/{program}.service.d")).join(DROP_IN);
        files.push((place, written::drop_in(&extended)));
    }
    if setting.is_none() && files.is_empty() {
        return Ok(found);
    }
    let conf = written::tunables_conf(setting.unwrap_or_default(), &sections);
    let place = directory.join("tunables.conf");
    is_ours_or_none(&place, &conf)?;
    files.push((place, conf));
    for (file, text) in files {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        output::write_file(&file, text.as_bytes())?;
        output::tell(&format!("written: {}", file.display()));
    }
    output::tell(
        "tunables.conf is read by glibc 2.44 and later, after `ldconfig`; older ones take the drop-ins alone",
    );
    Ok(status::OK)
}

/// The program of a record of `advise`, and what it recommends. A record may be anybody's: its words become names of
/// files and lines of others' files, so they are checked here.
fn recommended(path: &Path) -> anyhow::Result<(String, Vec<(String, String)>)> {
    let record = record::read(path)?;
    let recommended = record.header.settings.get(RECOMMENDED);
    let variables = recommended.and_then(|set| set.as_object()).with_context(|| {
        let found = "found no recommended setting, accepted a record of `advise` that has one";
        format!("{}: {found}", path.display())
    })?;
    let program = record.rows.first().map_or("", |row| row.cell.operation.as_str());
    if !names::is_name(program) {
        bail!(
            "{}: found the program's name {program:?}, accepted {}",
            path.display(),
            names::NAMES
        );
    }
    let checked = variables.iter().map(|(name, value)| {
        let text = value.as_str().filter(|text| !text.contains(char::is_control));
        let text = text.filter(|_| is_variable(name)).with_context(|| {
            format!(
                "{}: found {name:?} set to {value}, accepted a variable's name and text without control characters",
                path.display()
            )
        })?;
        Ok((name.clone(), text.to_owned()))
    });
    Ok((program.to_owned(), checked.collect::<anyhow::Result<_>>()?))
}

fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(fits) && name.starts_with(|first: char| !first.is_ascii_digit())
}

/// Refuses a `tunables.conf` that somebody else wrote: it would be replaced.
fn is_ours_or_none(file: &Path, own: &str) -> anyhow::Result<()> {
    let first = |text: &str| text.lines().next().map(str::to_owned);
    match std::fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
        Ok(there) if first(&String::from_utf8_lossy(&there)) == first(own) => Ok(()),
        Ok(_) => bail!(
            "{}: found a file that this command did not write, accepted none or its own: move the lines of the one \
             there to a drop-in, or remove it",
            file.display()
        ),
    }
}

/// The variables that a unit sets, in files of this system or of the tree that `directory` belongs to; without our own.
fn unit_sets(directory: &Path, program: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let own = directory.join("systemd/system");
    // Beside the directory, which need not be there yet.
    let root = directory.parent().unwrap_or(directory);
    let vendors = ["usr/lib/systemd/system", "lib/systemd/system"];
    let mut set = BTreeMap::new();
    let unit = format!("{program}.service");
    let places = || vendors.iter().map(|place| root.join(place)).chain([own.clone()]);
    // systemd takes the first unit that it finds, and all drop-ins by their names.
    let mut files: Vec<PathBuf> = places().map(|place| place.join(&unit)).collect();
    files.reverse();
    files.retain(|file| file.is_file());
    files.truncate(1);
    let mut drop_ins = BTreeMap::new();
    for folder in places().map(|place| place.join(format!("{unit}.d"))) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let file = entry?.path();
            let name = file.file_name().unwrap_or_default().to_owned();
            if name != DROP_IN && file.extension().is_some_and(|extension| extension == "conf") {
                drop_ins.insert(name, file);
            }
        }
    }
    for file in files.into_iter().chain(drop_ins.into_values()) {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for line in text.replace("\\\n", " ").lines() {
            let Some(words) = line.trim_start().strip_prefix("Environment=") else { continue };
            let words = words_of(words);
            if words.is_empty() {
                set.clear();
            }
            for (name, value) in words.iter().filter_map(|word| word.split_once('=')) {
                set.insert(name.to_owned(), value.replace("%%", "%"));
            }
        }
    }
    Ok(set)
}

/// The words of a line as systemd parts them: at spaces outside of quotes; a backslash keeps what is behind it.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            ('\\', _) => word.get_or_insert_default().extend(characters.next()),
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_systemds() {
        assert_eq!(
            words_of(r#"A=1 "B=two words" C='x y'"z" D=\"q\" "#),
            ["A=1", "B=two words", "C=x yz", "D=\"q\""]
        );
        assert_eq!(words_of("  "), [""; 0]);
    }

    #[test]
    fn variables_are_names() {
        let refused = ["", "1A", "A B", "A=1", "A\n"];
        assert!(is_variable("_A1") && refused.iter().all(|name| !is_variable(name)));
    }
}
