//! Profiles that come with the library, one per CPU model, compiled in from `profiles/`.
//!
//! `shipped/table.rs` is made of those files by a test below. A profile is used where neither the environment nor the
//! user names one, and silently passed over where the CPU differs from the one it was made on: its
//! sizes are absolute, and one model is built with several caches (a complex of Zen 3 has 32 or 96
//! MiB of LLC), or a hypervisor hides a feature that its kernels need. [`shipped_profile`] says
//! which it is.

use crate::cpu::{Caches, Identity, Signature};
use crate::follow::{self, Resolved, Routine};
use crate::profile::{ProfileError, ProfileText};
use crate::reuse::Reuse;
use crate::slots;
use cachewise_kernels::{Features, Operation};
use core::cell::OnceCell;
use core::fmt;

/// A row of `table.rs`.
macro_rules! shipped {
    ($file:literal $name:literal $vendor:literal $family:literal $model:literal $caches:tt
        $(decide $decided:ident $reuse:ident $(($from:literal $to:literal $routine:ident $($technique:literal)?))*)*
    ) => {
        Shipped {
            vendor: $vendor,
            family: $family,
            model: $model,
            caches: $caches,
            name: $name,
            text: include_bytes!(concat!("../../profiles/", $file)),
            decisions: const { &[$($(Resolved {
                operation: Operation::$decided,
                reuse: Reuse::$reuse,
                from: $from,
                to: $to,
                routine: Routine::$routine$((slots::named(Operation::$decided, $technique)))?,
            }),*),*] },
        }
    };
}

/// A profile compiled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shipped {
    /// CPUID's vendor, family and model, and the bytes of L1d, L2 and LLC: as the text has them, so
    /// that the others are passed over without being read.
    pub(crate) vendor: &'static str,
    pub(crate) family: u32,
    pub(crate) model: u32,
    pub(crate) caches: [u64; 3],
    /// The CPU model's name, as [`Source::Shipped`](crate::Source::Shipped) shows it.
    pub(crate) name: &'static str,
    /// The file's bytes.
    pub(crate) text: &'static [u8],
    /// Lines of the text, so that no process has to read it: that takes tens of microseconds of its start.
    decisions: &'static [Resolved],
}

/// Every profile under `profiles/`.
pub(crate) static SHIPPED: &[Shipped] = include!("shipped/table.rs");

impl Shipped {
    pub(crate) fn is_for_model(&self, signature: &Signature) -> bool {
        self.vendor == signature.vendor.as_str()
            && self.family == signature.family
            && self.model == signature.model
    }

    /// Caches that are an assumption are nobody's.
    fn is_for_caches(&self, caches: &Caches) -> bool {
        !caches.clamped && self.caches == [caches.l1d, caches.l2, caches.llc]
    }

    /// Follows it, if this CPU has the features that its kernels need; the rows that it decides.
    pub(crate) fn follow(&self, identity: &Identity, caches: &OnceCell<Caches>) -> Option<u16> {
        self.runs_on(identity.features)
            .then(|| follow::follow_lines(self.decisions.iter().copied(), identity, caches))
    }

    /// Returns whether this architecture has all its kernels, and a CPU with these features runs them.
    fn runs_on(&self, available: Features) -> bool {
        let runs = |requires| available.contains(requires);
        self.decisions.iter().all(|line| match line.routine {
            Routine::Kernel(slot) | Routine::LibcOr(slot) => {
                slots::kernel(line.operation, slot).is_some_and(|kernel| runs(kernel.requires))
            }
            Routine::Libc => true,
        })
    }

    /// The profile's text, if this CPU has those features.
    pub(crate) fn read(&self, identity: &Identity) -> Result<ProfileText<'static>, ProfileError> {
        let profile = ProfileText::parse(self.text)?;
        profile.check_whole(&identity.signature, identity.features)?;
        Ok(profile)
    }
}

/// The profile for a CPU with these caches, which are asked for only where the model has a profile.
///
/// # Errors
/// The first profile for the model, where none is for these caches; `None` where there is none.
pub(crate) fn find(
    table: &'static [Shipped],
    signature: &Signature,
    caches: impl FnOnce() -> Caches,
) -> Result<&'static Shipped, Option<&'static Shipped>> {
    let mut of_model = table.iter().filter(|shipped| shipped.is_for_model(signature));
    let first = of_model.next().ok_or(None)?;
    let caches = caches();
    core::iter::once(first)
        .chain(of_model)
        .find(|shipped| shipped.is_for_caches(&caches))
        .ok_or(Some(first))
}

/// The profile that comes with the library for this CPU model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShippedProfile {
    /// The CPU model's name.
    pub model: &'static str,
    /// The profile, as its file has it: for [`ProfileText::parse`].
    pub text: &'static [u8],
    /// Why the library does not follow it here; `None` where it does unless a user, the machine or
    /// the program has a profile.
    pub unfit: Option<Unfit>,
}

/// Why a shipped profile is not followed on a CPU of its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// Its sizes are for other caches.
    Caches {
        /// Bytes of L1d, L2 and LLC of the CPU it was made on.
        profile: [u64; 3],
        /// The caches here.
        here: Caches,
    },
    /// This CPU lacks, or its hypervisor hides, what a kernel of the profile needs.
    Profile(ProfileError),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |bytes: u64| bytes >> 10;
        match self {
            Unfit::Caches { profile: [l1d, l2, llc], here } => {
                write!(
                    f,
                    "it is for caches of {}, {} and {} KiB (L1d, L2, LLC), this CPU ",
                    kib(*l1d),
                    kib(*l2),
                    kib(*llc)
                )?;
                if here.clamped {
                    return f.write_str("does not tell its own");
                }
                write!(f, "has {}, {} and {} KiB", kib(here.l1d), kib(here.l2), kib(here.llc))
            }
            Unfit::Profile(error) => error.fmt(f),
        }
    }
}

/// The profile that comes with the library for this CPU model, and whether it suits this CPU.
///
/// ```
/// if let Some(shipped) = cachewise::shipped_profile() {
///     match shipped.unfit {
///         None => println!("{} is this CPU", shipped.model),
///         Some(why) => println!("{} is not followed: {why}", shipped.model),
///     }
/// }
/// ```
#[must_use]
pub fn shipped_profile() -> Option<ShippedProfile> {
    let identity = Identity::get();
    about(SHIPPED, &identity, Caches::of(&identity))
}

fn about(table: &'static [Shipped], identity: &Identity, here: Caches) -> Option<ShippedProfile> {
    match find(table, &identity.signature, || here) {
        Ok(found) => {
            let unfit = found.read(identity).err().map(Unfit::Profile);
            Some(ShippedProfile { model: found.name, text: found.text, unfit })
        }
        Err(Some(other)) => {
            let unfit = Some(Unfit::Caches { profile: other.caches, here });
            Some(ShippedProfile { model: other.name, text: other.text, unfit })
        }
        Err(None) => None,
    }
}

// Their kernels are those of x86-64.
#[cfg(all(test, feature = "std", target_arch = "x86_64"))]
mod tests {
    extern crate std;
    use super::*;
    use crate::cpu::Cpu;
    use crate::profile::{Decision, LIBC, MAX_SIZE, Profile};
    use crate::slots::Slot;
    use cachewise_kernels::TABLE;
    use std::borrow::ToOwned;
    use std::boxed::Box;
    use std::path::Path;
    use std::string::{String, ToString};
    use std::{format, fs, vec};

    /// Zen 3 without and with stacked cache.
    const COMPLEX: Caches = Caches { l1d: 32 << 10, l2: 512 << 10, llc: 32 << 20, clamped: false };
    const STACKED: Caches = Caches { llc: 96 << 20, ..COMPLEX };

    /// A table with a profile for another CPU and one for `cpu`.
    fn table(cpu: Cpu, caches: Caches, kernel: &str) -> &'static [Shipped] {
        let profile = Profile {
            cpu,
            caches,
            decisions: vec![Decision::new(
                Operation::Equal,
                Reuse::Unknown,
                (256, MAX_SIZE),
                kernel,
            )],
            ..Profile::here()
        };
        let text = Box::leak(profile.to_text().into_bytes().into_boxed_slice());
        let Signature { family, model, .. } = cpu.signature;
        let vendor = Box::leak(String::from(cpu.signature.vendor.as_str()).into_boxed_str());
        let sizes = [caches.l1d, caches.l2, caches.llc];
        let row = |vendor, name, text| Shipped {
            vendor,
            family,
            model,
            caches: sizes,
            name,
            text,
            decisions: &[],
        };
        let other = row("Other", "another", b"");
        let this = row(vendor, "this model", text);
        Box::leak(Box::new([other, this]))
    }

    #[test]
    fn the_profile_of_this_model_is_found_and_read() {
        let (cpu, identity) = (Cpu::detect(), Identity::get());
        let fit = table(cpu, COMPLEX, "equal.bytes");
        let found = find(fit, &cpu.signature, || COMPLEX).expect("it is there");
        assert_eq!(found.name, "this model");
        found.read(&identity).expect("it suits this CPU");
        let said = about(fit, &identity, COMPLEX).expect("it is there");
        assert_eq!((said.model, said.unfit), ("this model", None));

        let foreign = Signature::new("Nobody", 1, 1, 1);
        let unasked = || panic!("the caches of a model without a profile");
        assert!(matches!(find(fit, &foreign, unasked), Err(None)));
        let unusable = table(cpu, COMPLEX, "equal.warp");
        assert!(
            find(unusable, &cpu.signature, || COMPLEX).expect("found").read(&identity).is_err()
        );
        let said = about(unusable, &identity, COMPLEX).expect("it is there");
        assert!(matches!(said.unfit, Some(Unfit::Profile(_))), "{said:?}");
    }

    #[test]
    fn a_profile_is_for_the_caches_it_was_made_on() {
        let (cpu, identity) = (Cpu::detect(), Identity::get());
        let fit = table(cpu, COMPLEX, "equal.bytes");
        let differing = [
            STACKED,
            Caches { l1d: 48 << 10, ..COMPLEX },
            Caches { l2: 1 << 20, ..COMPLEX },
            // A guest that tells nothing is given the sizes of Zen 3 itself.
            Caches { clamped: true, ..COMPLEX },
        ];
        for caches in differing {
            let other = find(fit, &cpu.signature, || caches).expect_err("it is for others");
            assert_eq!(other.map(|shipped| shipped.name), Some("this model"));
            let said = about(fit, &identity, caches).expect("there is one for the model");
            let unfit = Unfit::Caches { profile: [32 << 10, 512 << 10, 32 << 20], here: caches };
            assert_eq!(said.unfit, Some(unfit));
        }
        let said = about(fit, &identity, STACKED).and_then(|said| said.unfit).expect("unfit");
        assert_eq!(
            said.to_string(),
            "it is for caches of 32, 512 and 32768 KiB (L1d, L2, LLC), \
             this CPU has 32, 512 and 98304 KiB"
        );
        let lied = Caches { clamped: true, ..COMPLEX };
        let said = about(fit, &identity, lied).and_then(|said| said.unfit).expect("unfit");
        assert!(said.to_string().ends_with("this CPU does not tell its own"), "{said}");

        // Two profiles for one model: each for its own.
        let [other, this] = *fit else { panic!("two rows") };
        let sizes = [STACKED.l1d, STACKED.l2, STACKED.llc];
        let stacked = Shipped { caches: sizes, name: "stacked", ..this };
        let both = Box::leak(Box::new([other, this, stacked]));
        for (caches, name) in [(COMPLEX, "this model"), (STACKED, "stacked")] {
            assert_eq!(find(both, &cpu.signature, || caches).expect("it is there").name, name);
        }
    }

    /// The row of `table.rs` for a profile.
    fn row_of(file: &str, name: &str, text: &[u8]) -> String {
        let Profile { cpu, caches, decisions, .. } = Profile::parse(text).expect(file);
        let Signature { vendor, family, model, .. } = cpu.signature;
        let Caches { l1d, l2, llc, .. } = caches;
        let mut row = format!(
            "    shipped! {{\n        {file:?} \"{name} (family {family} model {model})\"\n        \
             \"{vendor}\" {family} {model} [{l1d}, {l2}, {llc}]"
        );
        let mut add = |text: String| row.push_str(&text);
        for of in decisions.chunk_by(|a, b| (a.operation, a.reuse) == (b.operation, b.reuse)) {
            add(format!("\n        decide {:?} {:?}", of[0].operation, of[0].reuse));
            for Decision { from, to, kernel, nearest, .. } in of {
                let technique = |kernel: &str| kernel.split_once('.').expect(file).1.to_owned();
                add(match (kernel == LIBC, nearest) {
                    (true, None) => format!(" ({from} {to} Libc)"),
                    (true, Some(nearest)) => {
                        format!(" ({from} {to} LibcOr b{:?})", technique(nearest))
                    }
                    _ => format!(" ({from} {to} Kernel b{:?})", technique(kernel)),
                });
            }
        }
        row + "\n    },\n"
    }

    /// `CACHEWISE_BLESS=1` writes the table; the names are those of the folder's README.
    #[test]
    fn the_table_is_what_the_profiles_say() {
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let at = |file: &str| crate_root.join("profiles").join(file);
        let readme = fs::read_to_string(at("README.md")).expect("a list of profiles");
        let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let rows = rows.map(|(stem, line)| {
            let (file, name) = (format!("{stem}.profile"), line.split(" | ").next().expect(stem));
            row_of(&file, name, &fs::read(at(&file)).expect(stem))
        });
        let rows = rows.collect::<String>();
        let table = format!("// Made of `profiles/` by a test in `shipped.rs`.\n&[\n{rows}]\n");
        let path = crate_root.join("src/shipped/table.rs");
        if std::env::var_os("CACHEWISE_BLESS").is_some() {
            fs::write(&path, &table).expect("the table is writable");
        }
        let kept = fs::read_to_string(path).expect("a table");
        assert!(kept == table, "CACHEWISE_BLESS=1 makes the table of the profiles:\n{table}");
        let profiles = fs::read_dir(at(".")).expect("profiles").flatten();
        let profiles = profiles.filter(|file| file.path().extension() == Some("profile".as_ref()));
        assert_eq!(profiles.count(), SHIPPED.len(), "each has its row in the README");
    }

    #[test]
    fn every_shipped_profile_is_well_formed_and_its_lines_are_those_of_its_text() {
        let features = TABLE.iter().fold(Features::NONE, |all, kernel| all.and(kernel.requires));
        let everything = Identity { features, ..Identity::get() };
        for shipped in SHIPPED {
            let profile = ProfileText::parse(shipped.text).expect(shipped.name);
            assert!(shipped.is_for_model(&profile.signature()), "{}", shipped.name);
            assert!(shipped.is_for_caches(&profile.caches()), "{}", shipped.name);
            for decision in profile.decisions() {
                decision.choice(features).expect(decision.kernel);
            }
            let decisions = follow::looked_up(&profile, &everything);
            assert!(shipped.decisions.iter().copied().eq(decisions), "{}", shipped.name);
            assert!(shipped.runs_on(features), "{}", shipped.name);
            // One that lacks what the profile needs does not follow it, and nothing changes.
            let plain = Identity { features: Features::NONE, ..everything };
            assert_eq!(shipped.follow(&plain, &OnceCell::new()), None);
        }
    }

    #[test]
    fn what_this_architecture_lacks_makes_it_unusable() {
        let features = TABLE.iter().fold(Features::NONE, |all, kernel| all.and(kernel.requires));
        let (operation, reuse, from, to) = (Operation::Copy, Reuse::Unknown, 256, MAX_SIZE);
        let unknown = |routine| [Resolved { operation, reuse, from, to, routine }];
        for line in [unknown(Routine::Kernel(Slot::BOOT)), unknown(Routine::LibcOr(Slot::BOOT))] {
            let lines = Shipped { decisions: Box::leak(Box::new(line)), ..SHIPPED[0] };
            assert!(!lines.runs_on(features), "{line:?}");
        }
    }
}
