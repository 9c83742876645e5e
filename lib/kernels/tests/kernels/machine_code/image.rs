//! This executable as a file: code by address, functions and imported functions by name.

use object::{
    Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SymbolKind,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// A function of the executable.
#[derive(Clone, Debug)]
pub struct Symbol {
    pub name: String,
    pub addresses: Range<u64>,
}

impl Symbol {
    /// Returns whether it was compiled from the kernels crate.
    pub fn is_ours(&self) -> bool {
        self.name.contains("cachewise_kernels")
    }
}

/// Sections with contents, and functions by their start; all addresses are the file's.
pub struct Image {
    /// Address in the process minus address in the file.
    bias: u64,
    sections: Vec<(u64, Vec<u8>)>,
    symbols: BTreeMap<u64, Symbol>,
    /// Names of imported functions by the address of their slot in the global offset table.
    imports: BTreeMap<u64, String>,
}

impl Image {
    pub fn of_this_process() -> Image {
        let path = std::env::current_exe().expect("the path of this executable");
        let bytes = std::fs::read(&path).expect("this executable is readable");
        let file = object::File::parse(&*bytes).expect("this executable is an ELF file");
        // SAFETY: getauxval reads a table that the system passed to the process, and takes any key.
        let entry = unsafe { libc::getauxval(libc::AT_ENTRY) };
        let sections = file
            .sections()
            .filter_map(|section| Some((section.address(), section.data().ok()?.to_vec())))
            .filter(|(address, data)| *address != 0 && !data.is_empty())
            .collect();
        let symbols: BTreeMap<u64, Symbol> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .map(|symbol| {
                let addresses = symbol.address()..symbol.address() + symbol.size();
                (addresses.start, Symbol { name: symbol.name().unwrap_or("?").into(), addresses })
            })
            .collect();
        assert!(!symbols.is_empty(), "{} is stripped of its symbols", path.display());
        let dynamic = file.dynamic_symbol_table();
        let imports = file
            .dynamic_relocations()
            .into_iter()
            .flatten()
            .filter_map(|(slot, relocation)| match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol = dynamic.as_ref()?.symbol_by_index(index).ok()?;
                    Some((slot, symbol.name().ok()?.to_string()))
                }
                _ => None,
            })
            .collect();
        Image { bias: entry.wrapping_sub(file.entry()), sections, symbols, imports }
    }

    /// The file's address of a place in the process.
    pub fn address_of(&self, place: *const u8) -> u64 {
        (place.addr() as u64).wrapping_sub(self.bias)
    }

    /// The bytes from that address to the end of its section.
    pub fn bytes(&self, address: u64) -> &[u8] {
        self.sections
            .iter()
            .find_map(|(start, data)| {
                data.get(usize::try_from(address.checked_sub(*start)?).ok()?..)
                    .filter(|rest| !rest.is_empty())
            })
            .unwrap_or_default()
    }

    /// The function that the address lies in.
    pub fn symbol(&self, address: u64) -> Option<&Symbol> {
        let (_, symbol) = self.symbols.range(..=address).next_back()?;
        symbol.addresses.contains(&address).then_some(symbol)
    }

    /// The imported function whose slot is at that address.
    pub fn import(&self, slot: u64) -> Option<&str> {
        self.imports.get(&slot).map(String::as_str)
    }
}
