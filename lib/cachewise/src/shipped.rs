//! Profiles that come with the library, one per CPU model, compiled in from `profiles/`.
//!
//! A profile is used where neither the environment nor the user names one, and silently passed over where the CPU
//! differs from the one it was made on: its sizes are absolute, and one model is built with several caches (a complex
//! of Zen 3 has 32 or 96 MiB of LLC), or a hypervisor hides a feature that its kernels need. [`shipped_profile`] says
//! which it is.

use crate::cpu::{Caches, Identity, Signature};
use crate::follow;
use crate::profile::{ProfileError, ProfileText};
use core::cell::OnceCell;
use core::fmt;

/// A profile compiled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shipped {
    /// CPUID's vendor, family and model, and the bytes of L1d, L2 and LLC: as the text has them, so
    /// that the others are passed over without being read.
    cpu: (&'static str, u32, u32),
    caches: [u64; 3],
    /// The CPU model's name, as [`Source::Shipped`](crate::Source::Shipped) shows it.
    pub(crate) name: &'static str,
    /// The file's bytes.
    text: &'static [u8],
}

/// One of the folder's files.
macro_rules! shipped {
    ($vendor:literal, $family:literal, $model:literal, $caches:expr, $name:literal) => {
        Shipped {
            cpu: ($vendor, $family, $model),
            caches: $caches,
            name: concat!($name, " (family ", $family, " model ", $model, ")"),
            text: include_bytes!(concat!(
                "../profiles/",
                $vendor,
                "-",
                $family,
                "-",
                $model,
                ".profile"
            )),
        }
    };
}

/// Every profile under `profiles/`.
pub(crate) static SHIPPED: &[Shipped] = &[
    shipped!("AuthenticAMD", 25, 1, [32 << 10, 512 << 10, 32 << 20], "AMD Zen 3 servers"),
    shipped!("AuthenticAMD", 25, 17, [32 << 10, 1 << 20, 32 << 20], "AMD Zen 4 servers"),
    shipped!("AuthenticAMD", 26, 2, [48 << 10, 1 << 20, 32 << 20], "AMD Zen 5 servers"),
    shipped!(
        "GenuineIntel",
        6,
        85,
        [32 << 10, 1 << 20, 37_486_592],
        "Intel Skylake and Cascade Lake servers"
    ),
];

impl Shipped {
    pub(crate) fn is_for_model(&self, signature: &Signature) -> bool {
        self.cpu == (signature.vendor.as_str(), signature.family, signature.model)
    }

    /// Caches that are an assumption are nobody's.
    fn is_for_caches(&self, caches: &Caches) -> bool {
        !caches.clamped && self.caches == [caches.l1d, caches.l2, caches.llc]
    }

    /// Follows it, if this CPU has the features that its kernels need; the rows that it decides. A test reads the text, so that
    /// no process checks its form again: that takes a third of the time that a process takes to follow it.
    pub(crate) fn follow(&self, identity: &Identity, caches: &OnceCell<Caches>) -> Option<u16> {
        let [l1d, l2, llc] = self.caches;
        let here = Caches { l1d, l2, llc, clamped: false };
        let profile = ProfileText::trusted(self.text, identity.signature, here);
        profile.check_whole(&identity.signature, identity.features).ok()?;
        Some(follow::follow(&profile, identity, caches))
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
        match self {
            Unfit::Caches { profile, here } => {
                let [l1d, l2, llc] = profile.map(|bytes| bytes >> 10);
                write!(
                    f,
                    "it is for caches of {l1d}, {l2} and {llc} KiB (L1d, L2, LLC), this CPU "
                )?;
                if here.clamped {
                    return f.write_str("does not tell its own");
                }
                let [l1d, l2, llc] = [here.l1d, here.l2, here.llc].map(|bytes| bytes >> 10);
                write!(f, "has {l1d}, {l2} and {llc} KiB")
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
    let (found, unfit) = match find(table, &identity.signature, || here) {
        Ok(found) => (found, found.read(identity).err().map(Unfit::Profile)),
        Err(other) => (other?, Some(Unfit::Caches { profile: other?.caches, here })),
    };
    Some(ShippedProfile { model: found.name, text: found.text, unfit })
}

// Their kernels are those of x86-64.
#[cfg(all(test, feature = "std", target_arch = "x86_64"))]
mod tests {
    extern crate std;
    use super::*;
    use cachewise_kernels::{Features, TABLE};
    use std::path::Path;

    /// An identity of that model, with all features.
    fn identity(shipped: &Shipped) -> Identity {
        let features = TABLE.iter().fold(Features::NONE, |all, kernel| all.and(kernel.requires));
        let (vendor, family, model) = shipped.cpu;
        let signature = Signature::new(vendor, family, model, 1);
        Identity { signature, features, ..Identity::get() }
    }

    #[test]
    fn each_shipped_profile_is_followed_on_its_cpu_with_its_caches_and_nowhere_else() {
        for shipped in SHIPPED {
            let identity = identity(shipped);
            let [l1d, l2, llc] = shipped.caches;
            let own = Caches { l1d, l2, llc, clamped: false };
            let profile = ProfileText::parse(shipped.text).expect(shipped.name);
            assert!(shipped.is_for_model(&profile.signature()), "{}", shipped.name);
            assert_eq!(profile.caches(), own, "{}", shipped.name);
            assert!(profile.decisions().all(|line| line.choice(identity.features).is_ok()));
            let trusted = ProfileText::trusted(shipped.text, identity.signature, own);
            assert!(trusted.decisions().eq(profile.decisions()), "{}", shipped.name);
            let others = [
                Caches { llc: 3 * llc, ..own },
                Caches { l1d: l1d + 1, ..own },
                // A guest that tells nothing is given sizes that may be these by chance.
                Caches { clamped: true, ..own },
            ];
            let unfit =
                |identity: &Identity, here| about(SHIPPED, identity, here).expect("one").unfit;
            assert_eq!(unfit(&identity, own), None, "{}", shipped.name);
            for here in others {
                assert_eq!(
                    unfit(&identity, here),
                    Some(Unfit::Caches { profile: shipped.caches, here })
                );
            }
            let plain = Identity { features: Features::NONE, ..identity };
            assert!(matches!(unfit(&plain, own), Some(Unfit::Profile(_))), "{}", shipped.name);
            assert_eq!(shipped.follow(&plain, &OnceCell::new()), None);
            let foreign = Identity { signature: Signature::new("Nobody", 1, 1, 1), ..identity };
            assert_eq!(about(SHIPPED, &foreign, own), None);
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
        let files = std::fs::read_dir(folder).expect("profiles").flatten();
        let files = files.filter(|file| file.path().extension() == Some("profile".as_ref()));
        assert_eq!(files.count(), SHIPPED.len(), "each has its row");
    }

    #[test]
    fn of_two_profiles_for_one_model_each_is_for_its_own_caches() {
        let [first, ..] = *SHIPPED else { panic!("profiles") };
        let stacked = Shipped { caches: [32 << 10, 512 << 10, 96 << 20], name: "stacked", ..first };
        let both = std::boxed::Box::leak(std::boxed::Box::new([first, stacked]));
        for of in both.iter() {
            let [l1d, l2, llc] = of.caches;
            let here = || Caches { l1d, l2, llc, clamped: false };
            let found = find(both, &identity(of).signature, here).expect("it is there");
            assert_eq!(found.name, of.name);
        }
    }
}
