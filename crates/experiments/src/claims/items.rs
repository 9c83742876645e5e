//! The items of the five documents: their words, and what answers an item that is no claim.

/// One item of the checklist.
pub struct Item {
    /// Document and number, `000.6`. Numbers stay: code and tests cite them.
    pub number: &'static str,
    /// Whose words they are.
    pub kind: Kind,
    /// The words.
    pub words: &'static str,
    /// What answers it beside its claims; empty where these suffice.
    pub answer: &'static str,
}

/// Whose words an item has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The document's, letter by letter but for line breaks and marks of quotation.
    Quoted,
    /// Ours: the document does not say it.
    Inferred,
    /// Somebody else's.
    Elsewhere(&'static str),
}

const fn quoted(number: &'static str, words: &'static str, answer: &'static str) -> Item {
    Item { number, kind: Kind::Quoted, words, answer }
}

const fn inferred(number: &'static str, words: &'static str, answer: &'static str) -> Item {
    Item { number, kind: Kind::Inferred, words, answer }
}

/// The later commit on the routine of document 004.
const GUO: Kind = Kind::Elsewhere(
    "Simon Guo, \"powerpc/64: add 32 bytes prechecking before using VMX optimization on memcmp()\", Linux 4.19",
);

/// All of them.
pub const ITEMS: &[Item] = &[
    quoted("000.1", "slow == rep stosd / rep movsd routines", "kernels `slow`"),
    quoted(
        "000.2",
        "mmx_APn == aligned loop, using prefetch, NOT using non-temporal stores",
        "kernels `mmx_APn`",
    ),
    quoted(
        "000.3",
        "mmx_APN == aligned loop, using prefetch, using non-temporal stores",
        "kernels `mmx_APN`",
    ),
    quoted(
        "000.4",
        "mmx_APn/APN == use NT only for copy (zero_page is non-NT)",
        "`page-copy` has the pair",
    ),
    inferred(
        "000.5",
        "twins with `movaps` and `movntps`, whose results are omitted there",
        "kernels `sse_APn`, `sse_APN`",
    ),
    quoted("000.6", "Both are 5-10% faster than \"rep stosd/rep movsd\" ones.", ""),
    quoted("000.7", "320k zeroing, 5x20000 loops", "`page-clear --classic`"),
    quoted("000.8", "each copy test does one fork per one loop", "`page-copy --classic`"),
    quoted(
        "000.9",
        "NNN/MMM == NNN zero_page, MMM copy_page calls were made",
        "both print five times and the counts, which are computed",
    ),
    quoted("000.10", "kernel zeroes out 3 pages and copies 8 more pages on each fork", ""),
    quoted(
        "000.11",
        "but also speed of subsequent access for page data",
        "`page-clear`, `reuse-map` and `receive` time the reader too; every 32nd byte is inferred",
    ),
    quoted("000.12", "NT zero_page() is a clear loss for small buffer", ""),
    quoted(
        "000.13",
        "If I use larger buffer and sizeof(buffer)+44k does not fit in cache, NT-copy wins hands down",
        "",
    ),
    quoted(
        "000.14",
        "Is there ANY workload which will be faster on non-NT copy_page() than on NT one?",
        "",
    ),
    quoted("000.15", "he says that NT is a loss", ""),
    quoted("000.16", "MMX and SSE routines are very close in speed.", ""),
    quoted(
        "000.17",
        "Since CPU typically uses write-allocate, we end up reading page even if code only writes into it.",
        "not tested as such: `zero-matrix` has `clzero` and `rep`, which need not read",
    ),
    quoted(
        "000.18",
        "which is the most used and most important case",
        "not tested: no count of real faults by reuse",
    ),
    quoted("001.1", "more than doubles bcopy bandwidth from 1.2GB/s to 2.5GB/s", ""),
    quoted(
        "001.2",
        "almost as fast (to within about 10%, with half the extra overhead for prefetchnta) as the best temporal method",
        "",
    ),
    quoted("001.3", "Is this with 5+GHz memory or with slower memory with the source cached?", ""),
    quoted(
        "001.4",
        "limited to the speed of main memory whether or not the target buffer is pre-read",
        "",
    ),
    quoted("001.5", "with half the extra overhead for prefetchnta", ""),
    quoted(
        "001.6",
        "the cost of reading the data into the cache would be paid later",
        "`whole-cost` has both parts",
    ),
    quoted("001.7", "up to 70% of the time is spent in copyout", ""),
    quoted(
        "001.8",
        "nontemporal copies should only be used in cases where it is know that the copies really are nontemporal",
        "",
    ),
    quoted(
        "001.9",
        "copyin() might be different, since it might often be known that the data will be DMA'ed out",
        "",
    ),
    quoted(
        "001.10",
        "temporal copies are limited to the bandwidth of main memory, which is (3 to 5 times slower on my test machines)",
        "",
    ),
    quoted(
        "001.11",
        "they would be slower if the application actually uses the data soon enough",
        "",
    ),
    quoted(
        "001.12",
        "large bcopys are (or should be) rare",
        "not tested: a kernel's calls were not counted",
    ),
    quoted(
        "001.13",
        "Solaris can recieve a netperf TCP stream at 9.75Gb/sec while using only 47% CPU",
        "not tested: no adapter, and no Solaris",
    ),
    quoted(
        "002.1",
        "copyN: 3432351420 B/s (1193351 us) (movntq)",
        "kernels `copy0` to `copyY`; copyI and copyJ are inferred",
    ),
    quoted("002.2", "Fully cached case", "`copy-matrix`: L1, L2, LLC, DRAM"),
    quoted("002.3", "copy0: 16907105855 B/s ( 242265 us) (movsq)", "the columns of `copy-matrix`"),
    quoted(
        "002.4",
        "in the fully-L1-cached case, this speeds it down from 13.7GB/S to 9.2GB/S",
        "",
    ),
    quoted(
        "002.5",
        "movntps does 4 128-bit loads followed by 4 128-bit stores.",
        "the shapes of the kernels",
    ),
    quoted("002.6", "kernel bcopy (unroll 64 fp i-prefetch)", "kernel `copyD`"),
    quoted("002.7", "For large copies, nothing beats it.", ""),
    quoted(
        "002.8",
        "Just make N much larger than 128 for this to easily beat simply loading and storing 128 bytes at a time",
        "",
    ),
    quoted("002.9", "prefetchnta seems to work fine on A64 but not on AXP or P4", ""),
    quoted(
        "002.10",
        "the more data you can load into the cpu on the 'read' side of the copy before transitioning to the 'write' side, the better",
        "",
    ),
    quoted(
        "002.11",
        "This can make a difference of 30% for bzero bandwidth in benchmarks",
        "banks of DRAM: not tested",
    ),
    quoted("002.12", "ps is slow if there are denormals in the data", ""),
    quoted("002.13", "movnt* is a clear win in at least one case: zeroing pages in idle.", ""),
    quoted(
        "002.14",
        "SunOS on amd64 uses movnt* whenever the copy size is >= 128. This seems too small.",
        "",
    ),
    quoted(
        "002.15",
        "XMM vs integer is irrelevant for bandwidth considerations for the L1 level",
        "",
    ),
    quoted("002.16", "I don't try hard to optimize or benchmark misaligned cases.", ""),
    quoted(
        "002.17",
        "how many bytes you have to have to copy for it to become worth using the FPU",
        "",
    ),
    quoted("002.18", "I've never seen 128-bit nontemporal writes go faster than 64-bit ones", ""),
    quoted("002.19", "any form of movnt can be used for this", ""),
    quoted("002.20", "has the same speed as integer moves of half the size", ""),
    quoted("002.21", "integer instructions beat it easily on A64", ""),
    quoted("002.22", "movnti is quite fast provided prefetchnta is not used with it", ""),
    quoted("002.23", "Which modern CPUs can't keep up with L2?", ""),
    quoted("002.24", "movsl is quite slow", ""),
    quoted(
        "002.25",
        "Now I think using different registers is unnecessary",
        "not tested: `twins` has one register or four, without a row",
    ),
    quoted(
        "002.26",
        "For the movnti benchmarks, the load-store runs slower than the loop control so unrolling is not needed.",
        "not tested: no kernel that is not unrolled",
    ),
    quoted(
        "002.27",
        "movnti is even more competitive with L2 if main memory is DDR-2.",
        "not tested: one kind of memory a machine",
    ),
    quoted("002.28", "It is necessary to use movnt to get anywhere near memory bandwidth", ""),
    quoted("002.29", "the extra instructions for the prefetch are a bit wasteful", ""),
    quoted(
        "002.30",
        "Use of prefetch or use of movntdq instead of movdqa is highly problematic.",
        "the hint of the library; `hints`",
    ),
    quoted(
        "003.1",
        "Modifies the page allocator to be able to take the __GFP_ZERO flag and returns zeroed memory on request.",
        "upstream; `linux/` extends it, [not everywhere](../linux/README.md)",
    ),
    quoted(
        "003.2",
        "Adds second order argument to clear_page and updates all arches.",
        "not built: `linux/` clears page by page",
    ),
    quoted(
        "003.3",
        "Adds management of ZEROED and NOT_ZEROED pages and a background daemon called scrubd.",
        "the pool and its scrubber; `linux/`",
    ),
    quoted(
        "003.4",
        "Implements a driver to shift the zeroing off the cpu into hardware.",
        "the pool's CUDA engine, tested with a test library in the driver's place; no device recorded",
    ),
    quoted(
        "003.5",
        "If a page is coalesced of that order or higher then the scrub daemon will start zeroing",
        "the pool's `start`",
    ),
    quoted("003.6", "until all pages of order /proc/sys/vm/scrub_stop and higher are zeroed", ""),
    quoted(
        "003.7",
        "The typical result of not running kscrubd under high loads is to slow the system down even further",
        "",
    ),
    quoted(
        "003.8",
        "sparsely accessed memory which is typical for anonymous memory and pte maps",
        "page tables: not tested",
    ),
    quoted(
        "003.9",
        "the logic will favor hot zeroing rather than simply shifting processing around",
        "the pool zeroes at hand-out where nothing is zeroed",
    ),
    quoted(
        "003.10",
        "the scrub daemon is typically running on the most idle cpu",
        "the scrubber runs at the idle priority, in bursts",
    ),
    quoted(
        "003.11",
        "the test is repeated 10 times allocating 256M each in rapid succession",
        "`page-fault --classic`",
    ),
    quoted(
        "003.12",
        "Gb Rep Threads User System Wall flt/cpu/s fault/wsec",
        "the columns of `page-fault`",
    ),
    quoted(
        "003.13",
        "influence of the number of cache lines touched on the performance of the prezero enhancements",
        "`page-fault`: 1 to 64 lines of 64 bytes",
    ),
    quoted(
        "003.14",
        "The result is a significant increase of the page fault performance",
        "lmbench under such a kernel: not tested",
    ),
    quoted("003.15", "Approaches like that will only shift processing to somewhere else", ""),
    quoted(
        "003.16",
        "zeroing large consecutive areas of memory is more efficient than zeroing page size chunks",
        "",
    ),
    quoted(
        "003.17",
        "Pages that have recently been touched and that soon will be touched again are better hot zeroed",
        "",
    ),
    quoted(
        "003.18",
        "The most expensive operation in the page fault handler is (apart of SMP locking overhead) the zeroing of the page",
        "",
    ),
    quoted(
        "003.19",
        "With hardware support there will be minimal impact of zeroing on the performance of the system.",
        "the CPU's engines alone: no device recorded",
    ),
    quoted("003.20", "The scrub daemon is hardly noticable", ""),
    quoted(
        "004.1",
        "for any significant amount of comparison, a vectorised loop is significantly quicker",
        "",
    ),
    quoted(
        "004.2",
        "the stride of the ALTIVEC compare loop",
        "kernels of 64 bytes a round; POWER8 under emulation, bytes only",
    ),
    quoted(
        "004.3",
        "The overhead of enabling ALTIVEC",
        "`vector-state`, in user space; a kernel's trap is not in it",
    ),
    quoted("004.4", "in the order of tens of bytes then it really wasn't worth it", ""),
    quoted("004.5", "Why the first 64 bytes, well why not?", ""),
    Item {
        number: "004.6",
        kind: GUO,
        words: "the first difference is within 16, 32, 64 bytes in 76, 83, 84 % of KSM's mismatches",
        answer: "",
    },
    quoted(
        "004.7",
        "Deltas below 1000ns",
        "histograms of single calls, three launches, in `compare-latency --classic`",
    ),
    quoted("004.8", "The results obtained here show no downside to adopting this approach", ""),
    quoted(
        "004.9",
        "a spike in the amount of deltas in the unpatched kernel at around 600ns",
        "the histograms of `compare-latency`: none seen",
    ),
];
