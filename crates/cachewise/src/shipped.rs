//! Profiles that come with the library, one per CPU model, compiled in from `profiles/`.
//!
//! A profile enters by its file and one line here. It is used where neither the environment nor
//! the user names one, and silently passed over where a hypervisor hides a feature it needs.

use crate::cpu::Signature;

/// A profile compiled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shipped {
    /// CPUID's vendor, family and model: enough to pass over the others without reading them.
    pub(crate) vendor: &'static str,
    pub(crate) family: u32,
    pub(crate) model: u32,
    /// The CPU model's name, as [`Source::Shipped`](crate::Source::Shipped) shows it.
    pub(crate) name: &'static str,
    /// The file's bytes.
    pub(crate) text: &'static [u8],
}

/// Every profile under `profiles/`.
pub(crate) static SHIPPED: &[Shipped] = &[
    Shipped {
        vendor: "AuthenticAMD",
        family: 25,
        model: 1,
        name: "AMD Zen 3 servers (family 25 model 1)",
        text: include_bytes!("../../../profiles/AuthenticAMD-25-1.profile"),
    },
    Shipped {
        vendor: "AuthenticAMD",
        family: 26,
        model: 2,
        name: "AMD Zen 5 servers (family 26 model 2)",
        text: include_bytes!("../../../profiles/AuthenticAMD-26-2.profile"),
    },
    Shipped {
        vendor: "GenuineIntel",
        family: 6,
        model: 85,
        name: "Intel Skylake and Cascade Lake servers (family 6 model 85)",
        text: include_bytes!("../../../profiles/GenuineIntel-6-85.profile"),
    },
];

/// The profile for a CPU.
pub(crate) fn find(table: &'static [Shipped], signature: &Signature) -> Option<&'static Shipped> {
    table.iter().find(|shipped| {
        shipped.vendor == signature.vendor.as_str()
            && shipped.family == signature.family
            && shipped.model == signature.model
    })
}

// Their kernels are those of x86-64.
#[cfg(all(test, feature = "std", target_arch = "x86_64"))]
mod tests {
    extern crate std;
    use super::*;
    use crate::cpu::{Caches, Cpu, Identity};
    use crate::profile::{Decision, MAX_SIZE, Profile, ProfileText};
    use crate::reuse::Reuse;
    use crate::source::follow_shipped;
    use cachewise_kernels::{Features, Operation, TABLE};
    use std::boxed::Box;
    use std::string::String;
    use std::vec;

    /// A table with a profile for another CPU and one for `cpu`.
    fn table(cpu: Cpu, kernel: &str) -> &'static [Shipped] {
        let profile = Profile {
            cpu,
            caches: Caches::detect(),
            record: None,
            written: String::new(),
            decisions: vec![Decision {
                operation: Operation::Equal,
                reuse: Reuse::Unknown,
                from: 256,
                to: MAX_SIZE,
                kernel: kernel.into(),
                nearest: None,
            }],
            parallel: vec![],
            entries: vec![],
            notes: vec![],
        };
        let text = Box::leak(profile.to_text().into_bytes().into_boxed_slice());
        let Signature { family, model, .. } = cpu.signature;
        let vendor = Box::leak(String::from(cpu.signature.vendor.as_str()).into_boxed_str());
        let other = Shipped { vendor: "Other", family, model, name: "another", text: b"" };
        let this = Shipped { vendor, family, model, name: "this model", text };
        Box::leak(Box::new([other, this]))
    }

    #[test]
    fn the_profile_of_this_model_is_found_and_followed() {
        let (cpu, identity) = (Cpu::detect(), Identity::get());
        let found = find(table(cpu, "equal.bytes"), &cpu.signature).expect("it is there");
        assert_eq!(found.name, "this model");
        let row = crate::profile::row(Operation::Equal, Reuse::Unknown);
        assert_eq!(follow_shipped(found, &identity), Some(1 << row));

        let foreign = Signature::new("Nobody", 1, 1, 1);
        assert!(find(table(cpu, "equal.bytes"), &foreign).is_none());
        let unusable = find(table(cpu, "equal.warp"), &cpu.signature).expect("it is there");
        assert_eq!(follow_shipped(unusable, &identity), None);
    }

    #[test]
    fn every_shipped_profile_is_well_formed_and_for_the_cpu_it_is_listed_under() {
        for shipped in SHIPPED {
            let profile = ProfileText::parse(shipped.text).expect(shipped.name);
            let signature = profile.signature();
            assert_eq!(signature.vendor.as_str(), shipped.vendor, "{}", shipped.name);
            assert_eq!((signature.family, signature.model), (shipped.family, shipped.model));
            for decision in profile.decisions() {
                let everything =
                    TABLE.iter().fold(Features::NONE, |all, row| all.and(row.requires));
                decision.choice(everything).expect(decision.kernel);
            }
        }
    }
}
