//! Profiles that come with the library, one per CPU model, compiled in from `profiles/`.
//!
//! A profile enters by its file and one row here. It is used where neither the environment nor the
//! user names one, and silently passed over where the CPU differs from the one it was made on: its
//! sizes are absolute, and one model is built with several caches (a complex of Zen 3 has 32 or 96
//! MiB of LLC), or a hypervisor hides a feature that its kernels need. [`shipped_profile`] says
//! which it is.

mod compiled;

use crate::cpu::{Caches, Identity, Signature};
use crate::profile::{ProfileError, ProfileText};
use compiled::Compiled;
use core::cell::OnceCell;
use core::fmt;

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
    /// Parsed profile, so that no process has to read the text; elsewhere, since what is beside addresses is
    /// copied when the library is relocated.
    compiled: &'static Compiled,
}

/// Every profile under `profiles/`.
pub(crate) static SHIPPED: &[Shipped] = &[
    Shipped {
        vendor: "AuthenticAMD",
        family: 25,
        model: 1,
        caches: [32 << 10, 512 << 10, 32 << 20],
        name: "AMD Zen 3 servers (family 25 model 1)",
        text: include_bytes!("../profiles/AuthenticAMD-25-1.profile"),
        compiled: const { &Compiled::of(include_bytes!("../profiles/AuthenticAMD-25-1.profile")) },
    },
    Shipped {
        vendor: "AuthenticAMD",
        family: 25,
        model: 17,
        caches: [32 << 10, 1 << 20, 32 << 20],
        name: "AMD Zen 4 servers (family 25 model 17)",
        text: include_bytes!("../profiles/AuthenticAMD-25-17.profile"),
        compiled: const { &Compiled::of(include_bytes!("../profiles/AuthenticAMD-25-17.profile")) },
    },
    Shipped {
        vendor: "AuthenticAMD",
        family: 26,
        model: 2,
        caches: [48 << 10, 1 << 20, 32 << 20],
        name: "AMD Zen 5 servers (family 26 model 2)",
        text: include_bytes!("../profiles/AuthenticAMD-26-2.profile"),
        compiled: const { &Compiled::of(include_bytes!("../profiles/AuthenticAMD-26-2.profile")) },
    },
    Shipped {
        vendor: "GenuineIntel",
        family: 6,
        model: 85,
        // 26 slices of 1.375 MiB.
        caches: [32 << 10, 1 << 20, (26 * 1408) << 10],
        name: "Intel Skylake and Cascade Lake servers (family 6 model 85)",
        text: include_bytes!("../profiles/GenuineIntel-6-85.profile"),
        compiled: const { &Compiled::of(include_bytes!("../profiles/GenuineIntel-6-85.profile")) },
    },
];

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

    /// Follows it, if this CPU has the features that its kernels and entries need; the rows that it
    /// decides.
    pub(crate) fn follow(&self, identity: &Identity, caches: &OnceCell<Caches>) -> Option<u16> {
        self.compiled.follow(identity, caches)
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
    use crate::profile::{Decision, MAX_SIZE, Profile};
    use crate::reuse::Reuse;
    use cachewise_kernels::{Features, Operation, TABLE};
    use std::boxed::Box;
    use std::string::{String, ToString};
    use std::vec;

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
        let row = |vendor, name, text| {
            let compiled = Box::leak(Box::new(Compiled::of(text)));
            Shipped { vendor, family, model, caches: sizes, name, text, compiled }
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

    #[test]
    fn every_shipped_profile_is_well_formed_and_for_the_cpu_it_is_listed_under() {
        for shipped in SHIPPED {
            let profile = ProfileText::parse(shipped.text).expect(shipped.name);
            assert!(shipped.is_for_model(&profile.signature()), "{}", shipped.name);
            assert!(shipped.is_for_caches(&profile.caches()), "{}", shipped.name);
            for decision in profile.decisions() {
                let everything =
                    TABLE.iter().fold(Features::NONE, |all, row| all.and(row.requires));
                decision.choice(everything).expect(decision.kernel);
            }
        }
    }
}
