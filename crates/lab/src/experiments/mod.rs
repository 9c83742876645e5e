//! Every experiment by name, one file per question.

mod aliasing;
mod cached_target;
pub mod compare_latency;
mod extent;
mod hints;
mod matrix;
mod page_clear;
mod page_colour;
mod page_compare;
mod page_copy;
pub mod page_fault;
mod pages;
pub mod parallel;
mod peers;
mod prelude;
mod read_batch;
mod receive;
mod reuse_map;
mod roofline;
mod setting;
mod sticky;
mod support;
mod tcp;
mod tcp_copies;
mod twins;
mod values;
mod vector_state;

pub use peers::of_envelope;
pub use setting::{Options, Setting};

use prelude::*;

/// An experiment anyone can run by name.
pub struct Experiment {
    /// What to type.
    pub name: &'static str,
    /// The question in a line.
    pub about: &'static str,
    /// Items of the source documents it answers (`002.2`).
    pub seeds: &'static [&'static str],
    /// Operations whose kernels it measures.
    pub operations: &'static [Operation],
    /// What `--classic` sets: the source document's own parameters; empty where it has none.
    pub classic: &'static str,
    /// How its rows are drawn, beside its tables.
    figures: fn() -> Vec<Figure>,
    run: fn(&mut Setting) -> Result,
}

/// How they are listed: an experiment of that name, and what else is to be said of it.
impl Experiment {
    const fn of(
        name: &'static str,
        figures: fn() -> Vec<Figure>,
        run: fn(&mut Setting) -> Result,
    ) -> Experiment {
        Experiment { name, about: "", seeds: &[], operations: &[], classic: "", figures, run }
    }

    const fn about(self, about: &'static str) -> Experiment {
        Experiment { about, ..self }
    }

    const fn seeds(self, seeds: &'static [&'static str]) -> Experiment {
        Experiment { seeds, ..self }
    }

    const fn operations(self, operations: &'static [Operation]) -> Experiment {
        Experiment { operations, ..self }
    }

    const fn classic(self, classic: &'static str) -> Experiment {
        Experiment { classic, ..self }
    }
}

/// All of them, in the order `list experiments` prints them.
pub const ALL: &[Experiment] = &[
    Experiment::of("copy-matrix", matrix::speeds, |setting| {
        matrix::operation_alone(setting, matrix::COPYING)
    })
        .about("every copy kernel and libc at every residency, with the columns of document 002")
        .seeds(&["000.1-6", "002.1-8", "002.10", "002.15"])
        .operations(matrix::COPYING),
    Experiment::of("zero-matrix", matrix::speeds, |setting| {
        matrix::operation_alone(setting, matrix::FILLING)
    })
        .about("every zero and fill kernel and libc at every residency")
        .seeds(&["000.1-6", "002.13", "003.2"])
        .operations(matrix::FILLING),
    Experiment::of("compare-matrix", matrix::speeds, |setting| {
        matrix::operation_alone(setting, matrix::COMPARING)
    })
        .about("every compare and equal kernel and libc on equal buffers, at every residency")
        .seeds(&["004.1-5"])
        .operations(matrix::COMPARING),
    Experiment::of("whole-cost", matrix::costs, matrix::whole_cost)
        .about("copy, zero and fill, with their reader and with a bystander whose lines they evict")
        .seeds(&["000.11", "001.1-6"])
        .operations(matrix::WRITING),
    Experiment::of("roofline", matrix::speeds, roofline::run)
        .about("how fast each level can be read, written, written non-temporally and copied")
        .seeds(&["002.15"])
        .operations(&[Operation::Copy, Operation::Fill, Operation::Equal]),
    Experiment::of("hints", hints::figures, hints::run)
        .about("does the hint `soon` make the reader faster, and does `never` spare the bystander?")
        .seeds(&["000.14", "001.6"])
        .operations(hints::OPERATIONS),
    Experiment::of(peers::NAME, peers::figures, peers::run)
        .about("the library, libc and other libraries, by size and with the sizes programs use")
        .seeds(&["002.16"])
        .operations(peers::OPERATIONS),
    Experiment::of("parallel", parallel::figures, parallel::run)
        .about("large copies and zeroing by several threads, started for the call or kept waiting")
        .operations(&[Operation::Copy, Operation::Zero]),
    Experiment::of("page-clear", page_clear::figures, page_clear::run)
        .about("pages zeroed, touched and read: buffers of 2004 and of the sizes of this machine's caches")
        .seeds(&["000.1-7", "000.9", "000.11-13", "000.15"])
        .operations(&[Operation::Zero])
        .classic("buffers of 32k and 320k, five runs of 200000 and 20000 loops"),
    Experiment::of("page-copy", page_copy::figures, page_copy::run)
        .about("copying the pages that a fork copies, then using them; a real fork; 2 MiB pages")
        .seeds(&["000.4", "000.8-13", "000.15"])
        .operations(&[Operation::Copy, Operation::Zero])
        .classic("buffers of 256k to 4k, five runs of 5000 to 40000 loops, 4 KiB pages only"),
    Experiment::of("reuse-map", reuse_map::figures, reuse_map::run)
        .about("non-temporal against temporal stores, by size, and by how much is read how late")
        .seeds(&["000.14", "001.6"])
        .operations(&[Operation::Copy, Operation::Zero])
        .classic("mmx_APn and mmx_APN, 1 and 100 pages, read at once or deferred"),
    Experiment::of("cached-target", cached_target::figures, cached_target::run)
        .about("non-temporal stores to a small target that is cached; prefetchnta by residency")
        .seeds(&["001.2-5", "002.9"])
        .operations(&[Operation::Copy])
        .classic("the documents' instructions only: movntq, movntps, movnti, movntdq"),
    Experiment::of("receive", receive::figures, receive::run)
        .about("copies from a device's ring to a user's buffer and back, by policy; TCP over loopback")
        .seeds(&["001.1", "001.6-8", "002.14"])
        .operations(&[Operation::Copy])
        .classic("bcopy (rep movsq) and pagecopy (movnti, prefetchnta), buffers of 4k and 256k"),
    Experiment::of("tcp-copies", tcp_copies::figures, tcp_copies::run)
        .about("TCP over loopback: read, MSG_ZEROCOPY, TCP_ZEROCOPY_RECEIVE and io_uring")
        .seeds(&["001.7"])
        .operations(&[Operation::Copy])
        .classic("messages of 4k and 256k"),
    Experiment::of("read-batch", read_batch::figures, read_batch::run)
        .about("how many bytes to read before writing them: loads before stores, block prefetch")
        .seeds(&["002.4", "002.7", "002.8", "002.10"])
        .operations(&[Operation::Copy])
        .classic("the kernels of 2007 (movdqa one by one and 8 by 8, Dillon's, movntq and movnti with block prefetch), in L1, in L2 and uncached"),
    Experiment::of("aliasing", aliasing::figures, aliasing::run)
        .about("source and destination nearly equal modulo 4 KiB; 4 KiB against 2 MiB pages")
        .seeds(&["002.11"])
        .operations(&[Operation::Copy, Operation::Zero]),
    Experiment::of("page-colour", page_colour::figures, page_colour::run)
        .about("zeroing pages that compete for the same cache sets, by physical address (as root)")
        .seeds(&["002.11"])
        .operations(&[Operation::Zero]),
    Experiment::of("values", values::figures, values::run)
        .about("does the value that is copied or stored matter: zeros, ones, random bytes, denormals?")
        .seeds(&["002.12"])
        .operations(&[Operation::Copy, Operation::Fill, Operation::Zero]),
    Experiment::of("twins", twins::figures, twins::run)
        .about("one copy loop with and without alignment, prefetch, and a store to another place")
        .seeds(&["000.6", "002.7"])
        .operations(&[Operation::Copy]),
    Experiment::of("sticky", sticky::figures, sticky::run)
        .about("how many calls until a routine is fast again after non-temporal stores to its destination")
        .seeds(&["001.2"])
        .operations(&[Operation::Copy, Operation::Fill, Operation::Zero]),
    Experiment::of("vector-state", vector_state::figures, vector_state::run)
        .about("what saving vector registers costs; from how many bytes on a vector kernel gains more")
        .seeds(&["002.17", "004.3", "004.4"])
        .operations(&[Operation::Copy, Operation::Zero, Operation::Compare]),
    Experiment::of("compare-latency", compare_latency::figures, compare_latency::run)
        .about("comparisons by length and first difference; pages of idle guests; single calls")
        .seeds(&["004.5", "004.6", "004.7", "004.8", "004.9"])
        .operations(&[Operation::Compare, Operation::Equal])
        .classic("whole pages; integers against vectors with and without a pre-check of 64 bytes; histograms to 1000 and 5000 ns; three launches"),
    Experiment::of("page-compare", page_compare::figures, page_compare::run)
        .about("pages compared where vector registers have to be saved first, as in a kernel")
        .seeds(&["004.3", "004.5", "004.6", "004.8"])
        .operations(&[Operation::Compare]),
    Experiment::of("extent", extent::figures, extent::run)
        .about("zeroing and copying in one large call, by 2 MiB, by 4 KiB, in order or shuffled")
        .seeds(&["002.7", "003.2"])
        .operations(&[Operation::Zero, Operation::Copy]),
    Experiment::of("page-fault", page_fault::figures, page_fault::run)
        .about("zeroed pages: by page fault, populated, by calloc, from the page pool")
        .seeds(&["003.1-15"])
        .operations(&[Operation::Zero])
        .classic("256 MiB once and ten times over, one thread and two"),
];

/// The experiment of that name.
///
/// # Errors
/// [`LabError::Usage`] with the names there are.
pub fn find(name: &str) -> Result<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.name == name).ok_or_else(|| {
        let nearest = crate::select::nearest(name, ALL.iter().map(|experiment| experiment.name));
        LabError::Usage(format!(
            "experiment: found \"{name}\", accepted one that `cachewise list experiments` names; \
             nearest: {}",
            nearest.join(", ")
        ))
    })
}

impl Experiment {
    /// How its rows are drawn: what goes into the record's header.
    pub fn figures(&self) -> Vec<Figure> {
        (self.figures)()
    }

    /// Runs it.
    ///
    /// # Errors
    /// Unknown kernels, impossible sizes, `--classic` without any, wrong bytes, refused memory, a record
    /// that cannot be written; [`LabError::Interrupted`] when the user stopped it, and then finished rows
    /// are with the recorder.
    pub fn run(&self, setting: &mut Setting) -> Result {
        setting.check_sizes()?;
        if setting.options.classic && self.classic.is_empty() {
            return Err(LabError::Usage(format!(
                "--classic: {} has no parameters of a source document; accepted without it",
                self.name
            )));
        }
        self.check_options(setting.options)?;
        setting.bench.experiment = self.name;
        (self.run)(setting)
    }

    /// An option that this experiment would not follow is refused rather than ignored.
    fn check_options(&self, options: &Options) -> Result {
        let given = [
            ("--op", !options.operations.is_empty()),
            ("--peer", !options.peers.is_empty()),
            ("--distribution", options.distribution.is_some()),
            ("--kernels", options.kernels.is_some()),
            ("--size", !options.sizes.is_empty()),
            ("--residency", !options.placements.is_empty()),
        ];
        let is_among = |names: &str| names.split(' ').any(|name| name == self.name);
        let few = TAKEN_BY.iter().filter(|(_, takers, _)| !is_among(takers));
        let mut all = few.chain(REFUSED_BY.iter().filter(|(_, names, _)| is_among(names)));
        let other = options.operations.iter().find(|op| !self.operations.contains(op));
        let (option, why) = match (all.find(|(option, ..)| given.contains(&(option, true))), other)
        {
            (Some((option, _, why)), _) => (*option, (*why).to_owned()),
            (None, Some(other)) => ("--op", format!("it is not about {other}")),
            (None, None) => return Ok(()),
        };
        Err(LabError::Usage(format!("{option}: not for {}: {why}", self.name)))
    }
}

/// Options that few experiments take, by whom, and why the others do not.
const TAKEN_BY: [(&str, &str, &str); 3] = [
    (
        "--op",
        "copy-matrix zero-matrix compare-matrix whole-cost hints peers",
        "it has operations of its own",
    ),
    ("--peer", "peers", "it compares kernels; use it with peers"),
    ("--distribution", "peers page-compare", "it has sizes of its own; use it with peers"),
];

/// Options that most experiments take, who does not, and why.
const REFUSED_BY: [(&str, &str, &str); 19] = [
    ("--kernels", "peers hints", "it compares whole libraries"),
    ("--kernels", "twins page-compare tcp-copies", "its candidates are its own"),
    ("--kernels", "page-fault", "its candidates are ways to get a page, not kernels"),
    ("--kernels", "parallel", "it compares numbers of threads"),
    ("--size", "page-compare", "it compares pages of 4096 bytes"),
    ("--size", "page-colour", "its sizes follow from the cache"),
    ("--residency", "peers hints", "its buffers are warm"),
    ("--residency", "page-clear", "the loop leaves its buffer where it leaves it"),
    ("--residency", "page-copy", "the loop leaves its pages where it leaves them"),
    ("--residency", "cached-target", "it goes through its own states"),
    ("--residency", "receive", "the ring and the user's buffer have places of their own"),
    ("--residency", "tcp-copies", "the kernel's buffers are where it puts them"),
    ("--residency", "page-colour", "a page's colour decides where it can be"),
    ("--residency", "sticky", "where the destination is left is what is measured"),
    ("--residency", "vector-state parallel", "one pair of buffers is used over and over"),
    (
        "--residency",
        "compare-latency",
        "buffers are warm, and pages lie where the tree leaves them",
    ),
    ("--residency", "page-compare", "pages are too many for any cache"),
    ("--residency", "extent", "an extent lies where its own last pass left it"),
    ("--residency", "page-fault", "a fresh page is wherever it was zeroed"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_refused_with_the_list() {
        assert_eq!(find("copy-matrix").map(|e| e.name).ok(), Some("copy-matrix"));
        let error = find("copy-matrices").err().expect("unknown").to_string();
        assert!(error.contains("copy-matrix, zero-matrix"), "{error}");
    }
}
