//! Mappings of a process, as the system lists them in `/proc/PID/smaps`, and their sums in `smaps_rollup`.

use std::ops::Range;
use std::string::{String, ToString};
use std::vec::Vec;

/// A mapping: its addresses, and the system's figures of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// First address, and the one behind the last.
    pub range: Range<usize>,
    /// Rest of the line: permissions, offset, device, inode and name.
    pub about: String,
    figures: Vec<(String, usize)>,
    flags: String,
}

impl Mapped {
    /// A figure in bytes by its name, `Rss` for example; `None` where the system does not give it.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<usize> {
        self.figures.iter().find(|figure| figure.0 == name).map(|figure| figure.1)
    }

    /// [`figure`](Mapped::figure), or 0 where the system does not give it.
    #[must_use]
    pub fn bytes(&self, name: &str) -> usize {
        self.figure(name).unwrap_or(0)
    }

    /// Checks for a flag of `VmFlags`, `ac` for example.
    #[must_use]
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.split_whitespace().any(|other| other == flag)
    }

    /// Bytes that it has between two addresses.
    #[must_use]
    pub fn between(&self, range: &Range<usize>) -> usize {
        self.range.end.min(range.end).saturating_sub(self.range.start.max(range.start))
    }
}

/// All mappings of this process, in the order of their addresses; none where the system does not list them.
#[must_use]
pub fn mappings() -> Vec<Mapped> {
    parse(&crate::os::text("/proc/self/smaps").unwrap_or_default())
}

/// The mappings that a text of that form lists; of `smaps_rollup` one.
#[must_use]
pub fn parse(text: &str) -> Vec<Mapped> {
    let mut found: Vec<Mapped> = Vec::new();
    for line in text.lines() {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let range = first.split_once('-').and_then(|(from, to)| {
            let [from, to] = [from, to].map(|text| usize::from_str_radix(text, 16).ok());
            Some(from?..to?)
        });
        match (range, found.last_mut()) {
            (Some(range), _) => {
                found.push(Mapped { range, about: rest.to_string(), ..Mapped::default() })
            }
            (None, Some(last)) if first == "VmFlags:" => last.flags = rest.trim().to_string(),
            (None, Some(last)) => {
                let kib = rest.trim().strip_suffix(" kB").and_then(|kib| kib.parse::<usize>().ok());
                let figure = kib.map(|kib| (first.trim_end_matches(':').to_string(), kib << 10));
                last.figures.extend(figure);
            }
            (None, None) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_flags_belong_to_the_mapping_above_them() {
        let text = "1000-3000 rw-p 00000000 00:00 0 [heap]\nSize:   8 kB\nRss: 4 kB\nVmFlags: rd wr ac\n\
                    3000-4000 r--p 00000000 00:00 0 /a file-name\nRss: 0 kB\nTHPeligible: 1\nVmFlags: rd dd\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].range.clone(), found[0].bytes("Rss")), (0x1000..0x3000, 4096));
        assert!(found[0].has_flag("ac") && !found[1].has_flag("ac") && found[1].has_flag("dd"));
        assert_eq!((found[1].bytes("Rss"), found[1].bytes("THPeligible")), (0, 0));
        assert_eq!(
            (found[0].between(&(0x2000..0x9000)), found[1].between(&(0..0x1000))),
            (0x1000, 0)
        );
    }

    #[test]
    #[cfg(not(miri))]
    fn this_processs_own_code_is_mapped() {
        let here = this_processs_own_code_is_mapped as fn() as usize;
        assert!(
            mappings().iter().any(|mapped| mapped.range.contains(&here) && mapped.bytes("Rss") > 0)
        );
    }
}
