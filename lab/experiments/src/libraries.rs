//! Other libraries behind the same function pointers, to be compared with.
//!
//! Each is called the way its C or Rust user calls it. Where the arguments come in another order or
//! nothing is returned, a few moves stand in between; that is said in the table's notes.

use crate::error::LabError;
use crate::routines::{Routine, SHARED};
use cachewise_kernels::kernel::{CompareFn, CopyFn, CopyPagesFn, FillFn, ZeroFn, ZeroPagesFn};
use cachewise_kernels::{Function, Operation};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::error::Error as _;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// The peer that comes with the laboratory, for an operation.
pub fn built_in(operation: Operation) -> Option<Routine> {
    let memx = match operation {
        Operation::Copy => Some(Function::Copy(memx_copy)),
        Operation::Fill => Some(Function::Fill(memx_fill)),
        Operation::Zero => Some(Function::Zero(memx_zero)),
        Operation::Compare => Some(Function::Compare(memx_compare)),
        Operation::Equal => Some(Function::Equal(memx_equal)),
        Operation::Move | Operation::CopyPages | Operation::ZeroPages => None,
    };
    memx.map(|function| Routine { name: "memx".to_owned(), function })
}

unsafe extern "C" fn memx_copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise (`CopyFn`): apart, so that one may be borrowed mutably.
    let to = unsafe { from_raw_parts_mut(dst, n) };
    // SAFETY: n bytes that the caller may read (`CopyFn`).
    let from = unsafe { from_raw_parts(src, n) };
    // Both lengths are n, which is all it could refuse.
    let _ = memx::memcpy(to, from);
    dst
}

unsafe extern "C" fn memx_fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise (`FillFn`).
    memx::memset(unsafe { from_raw_parts_mut(dst, n) }, byte as u8);
    dst
}

unsafe extern "C" fn memx_zero(dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise (`ZeroFn`).
    unsafe { memx_fill(dst, 0, n) }
}

unsafe extern "C" fn memx_compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise (`CompareFn`).
    let [a, b] = [a, b].map(|at| unsafe { from_raw_parts(at, n) });
    memx::memcmp(a, b) as i32
}

unsafe extern "C" fn memx_equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise (`CompareFn`).
    let [a, b] = [a, b].map(|at| unsafe { from_raw_parts(at, n) });
    i32::from(memx::memeq(a, b))
}

/// A function of a shared library, as `--peer` names it: `NAME=PATH:SYMBOL`, with `@OPERATION` where
/// the symbol does not say what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub(crate) name: String,
    path: PathBuf,
    symbol: String,
    pub(crate) operation: Operation,
}

impl std::str::FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Peer, String> {
        let refused = || {
            format!(
                "expected NAME=PATH:SYMBOL or NAME=PATH:SYMBOL@OPERATION, as in \
                 mine=/opt/lib/libmine.so:my_memcpy, found \"{text}\""
            )
        };
        let (name, rest) = text.split_once('=').ok_or_else(refused)?;
        let (path, symbol) = rest.rsplit_once(':').ok_or_else(refused)?;
        let (symbol, operation) = match symbol.split_once('@') {
            Some((symbol, operation)) => {
                let known = Operation::from_name(operation).ok_or_else(|| {
                    format!(
                        "expected @copy, @move, @fill, @zero, @compare, @equal, found \"@{operation}\""
                    )
                })?;
                (symbol, Some(known))
            }
            None => (symbol, implied(symbol)),
        };
        if name.is_empty() || path.is_empty() || symbol.is_empty() {
            return Err(refused());
        }
        let operation = operation.ok_or_else(|| {
            format!(
                "expected a name with memcpy, \
                 memmove, memset or memcmp in it, or {symbol}@copy, @move, @fill, @zero, @compare, \
                 @equal, found \"{symbol}\", which does not say what it does"
            )
        })?;
        Ok(Peer { name: name.to_owned(), path: path.into(), symbol: symbol.to_owned(), operation })
    }
}

/// The operation of a function of that name.
fn implied(symbol: &str) -> Option<Operation> {
    [
        ("memcpy", Operation::Copy),
        ("memmove", Operation::Move),
        ("memset", Operation::Fill),
        ("bzero", Operation::Zero),
        ("memcmp", Operation::Compare),
    ]
    .into_iter()
    .find(|(part, _)| symbol.contains(part))
    .map(|(_, operation)| operation)
}

impl Peer {
    /// Loads the library, which stays loaded.
    ///
    /// # Errors
    /// The library or the symbol is not found, in the loader's words.
    pub fn load(&self) -> Result<Routine, LabError> {
        let refused = |error: libloading::Error| {
            // The loader's words are the cause.
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            LabError::Peer(format!("{}: {why}", self.name))
        };
        // SAFETY: the library's constructors are the user's business.
        let library = unsafe { Library::open(Some(&self.path), RTLD_NOW | RTLD_LOCAL) };
        let library = ManuallyDrop::new(library.map_err(refused)?);
        macro_rules! as_function {
            ($kind:ident, $type:ty) => {{
                // SAFETY: the user names a function with this contract; nothing can check that but
                // the verification of its bytes that follows.
                let symbol = unsafe { library.get::<$type>(self.symbol.as_bytes()) };
                Function::$kind(*symbol.map_err(refused)?)
            }};
        }
        let function = match self.operation {
            Operation::Copy => as_function!(Copy, CopyFn),
            Operation::Move => as_function!(Move, CopyFn),
            Operation::Fill => as_function!(Fill, FillFn),
            Operation::Zero => as_function!(Zero, ZeroFn),
            Operation::Compare => as_function!(Compare, CompareFn),
            Operation::Equal => as_function!(Equal, CompareFn),
            Operation::CopyPages => as_function!(CopyPages, CopyPagesFn),
            Operation::ZeroPages => as_function!(ZeroPages, ZeroPagesFn),
        };
        Ok(Routine { name: self.name.clone(), function })
    }
}

/// The C library's function for an operation; it has none for pages.
///
/// # Errors
/// Errors of [`Peer::load`].
pub fn shared(library: &Path, operation: Operation) -> Result<Option<Routine>, LabError> {
    if matches!(operation, Operation::CopyPages | Operation::ZeroPages) {
        return Ok(None);
    }
    let (path, symbol) = (library.to_owned(), format!("cw_{operation}"));
    Peer { name: SHARED.to_owned(), path, symbol, operation }.load().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_says_what_it_does_or_is_told() {
        let peer: Peer = "a=/x/lib.so:aocl_memcpy".parse().expect("a peer");
        assert_eq!((peer.operation, peer.symbol.as_str()), (Operation::Copy, "aocl_memcpy"));
        let peer: Peer = "a=/x/lib.so:zap@zero".parse().expect("a peer");
        assert_eq!((peer.operation, peer.symbol.as_str()), (Operation::Zero, "zap"));
        for (text, says) in [
            ("a", "expected NAME=PATH:SYMBOL"),
            ("a=/x/lib.so", "expected NAME=PATH:SYMBOL"),
            ("a=/x/lib.so:zap", "does not say what it does"),
            ("a=/x/lib.so:zap@fly", "expected @copy, @move"),
            ("=/x/lib.so:memcpy", "expected NAME=PATH:SYMBOL"),
        ] {
            let error = text.parse::<Peer>().expect_err(text);
            assert!(error.contains(says), "{error}");
        }
    }
}
