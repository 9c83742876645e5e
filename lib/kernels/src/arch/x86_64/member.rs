//! Macros that turn one line of a vector file into functions and table rows.
//!
//! A line names a member of a family and its shape; the macro makes a module of that name with the
//! `extern "C"` entry points, compiled for the vector's ISA, and their rows. What the columns say
//! follows from the shape, so a row cannot claim what its code does not do.

use super::family::Shape;
use super::vector::Vector;
use crate::isa::Features;
use crate::kernel::{Function, Kernel, Prefetch, StoreKind};

/// A row whose columns follow from vector and shape.
pub(super) const fn row<V: Vector>(
    name: &'static str,
    requires: Features,
    shape: Shape,
    function: Function,
    about: &'static str,
) -> Kernel {
    let stores = !matches!(function, Function::Compare(_) | Function::Equal(_));
    let loads = !matches!(function, Function::Fill(_) | Function::Zero(_) | Function::ZeroPages(_));
    Kernel {
        name,
        requires,
        store: match (stores, shape.nt) {
            (false, _) => StoreKind::None,
            (true, false) => StoreKind::Temporal,
            (true, true) => StoreKind::NonTemporal,
        },
        prefetch: if loads { shape.prefetch } else { Prefetch::None },
        grouping: if loads && stores { shape.group as u8 } else { 0 },
        registers: V::CLASS,
        deploy: true,
        aliases: &[],
        about,
        function,
    }
}

/// `copy` (and, for deployable members, `move`) of one shape.
macro_rules! copies {
    ($vector:ty, $enable:literal, $isa:literal;
     $($(#[$attribute:meta])* $id:ident $suffix:literal $shape:expr, $about:literal;)*) => {$(
        $(#[$attribute])*
        pub(super) mod $id {
            use super::super::family::{self, Shape, Shaped};
            use super::super::member::row;
            use super::*;
            #[allow(unused_imports)]
            use crate::kernel::{Function, Kernel, Prefetch};

            struct Member;
            impl Shaped for Member {
                const SHAPE: Shape = $shape;
            }

            #[target_feature(enable = $enable)]
            unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`CopyFn`); the attribute enables the vector's ISA.
                unsafe { family::copy::<$vector, Member>(dst, src, n) }
            }

            #[target_feature(enable = $enable)]
            unsafe extern "C" fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`MoveFn`); the attribute enables the vector's ISA.
                unsafe { family::r#move::<$vector, Member>(dst, src, n) }
            }

            #[allow(dead_code, reason = "a member deploys both or is measured as copy alone")]
            pub(in super::super) const COPY: Kernel = row::<$vector>(
                concat!("copy.", $isa, $suffix),
                <$vector>::REQUIRES,
                Member::SHAPE,
                Function::Copy(copy),
                $about,
            );
            #[allow(dead_code, reason = "a member deploys both or is measured as copy alone")]
            pub(in super::super) const MOVE: Kernel = row::<$vector>(
                concat!("move.", $isa, $suffix),
                <$vector>::REQUIRES,
                Member::SHAPE,
                Function::Move(r#move),
                concat!("overlap-safe: ", $about),
            );
        }
    )*};
}

/// `fill`, `zero`, `copy-pages` and `zero-pages` of one shape.
macro_rules! fills {
    ($vector:ty, $enable:literal, $isa:literal;
     $($id:ident $suffix:literal $shape:expr, $about:literal;)*) => {$(
        pub(super) mod $id {
            use super::super::family::{self, Shape, Shaped};
            use super::super::member::row;
            use super::*;
            use crate::kernel::{Function, Kernel};

            struct Member;
            impl Shaped for Member {
                const SHAPE: Shape = $shape;
            }

            #[target_feature(enable = $enable)]
            unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`FillFn`); the attribute enables the vector's ISA.
                unsafe { family::fill::<$vector, Member>(dst, byte as u8, n) }
            }

            #[target_feature(enable = $enable)]
            unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
                // SAFETY: the caller's promise (`ZeroFn`); the attribute enables the vector's ISA.
                unsafe { family::fill::<$vector, Member>(dst, 0, n) }
            }

            #[target_feature(enable = $enable)]
            unsafe extern "C" fn copy_pages(dst: *mut u8, src: *const u8, order: u32) {
                // SAFETY: the caller's promise (`CopyPagesFn`); the attribute enables the ISA.
                unsafe { family::copy_pages::<$vector, Member>(dst, src, order) }
            }

            #[target_feature(enable = $enable)]
            unsafe extern "C" fn zero_pages(dst: *mut u8, order: u32) {
                // SAFETY: the caller's promise (`ZeroPagesFn`); the attribute enables the ISA.
                unsafe { family::zero_pages::<$vector, Member>(dst, order) }
            }

            macro_rules! rows {
                ($variant:ident, $function:ident, $operation:literal) => {
                    row::<$vector>(
                        concat!($operation, ".", $isa, $suffix),
                        <$vector>::REQUIRES,
                        Member::SHAPE,
                        Function::$variant($function),
                        $about,
                    )
                };
            }
            pub(in super::super) const ROWS: [Kernel; 4] = [
                rows!(Fill, fill, "fill"),
                rows!(Zero, zero, "zero"),
                rows!(CopyPages, copy_pages, "copy-pages"),
                rows!(ZeroPages, zero_pages, "zero-pages"),
            ];
        }
    )*};
}

/// `compare` and `equal` with an integer pre-check of so many bytes.
macro_rules! compares {
    ($vector:ty, $requires:expr, $enable:literal, $isa:literal;
     $($(#[$attribute:meta])* $id:ident $suffix:literal $pre:literal, $about:literal;)*) => {$(
        $(#[$attribute])*
        pub(super) mod $id {
            use super::super::comparing;
            use super::super::family::Shape;
            use super::super::member::row;
            use super::*;
            use crate::kernel::{Function, Kernel};

            #[target_feature(enable = $enable)]
            unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
                // SAFETY: the caller's promise (`CompareFn`); the attribute enables the ISA.
                unsafe { comparing::compare::<$vector, $pre>(a, b, n) }
            }

            #[target_feature(enable = $enable)]
            unsafe extern "C" fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
                // SAFETY: the caller's promise (`EqualFn`); the attribute enables the ISA.
                unsafe { comparing::equal::<$vector, $pre>(a, b, n) }
            }

            pub(in super::super) const ROWS: [Kernel; 2] = [
                row::<$vector>(
                    concat!("compare.", $isa, $suffix),
                    $requires,
                    Shape::PLAIN,
                    Function::Compare(compare),
                    $about,
                ),
                row::<$vector>(
                    concat!("equal.", $isa, $suffix),
                    $requires,
                    Shape::PLAIN,
                    Function::Equal(equal),
                    $about,
                ),
            ];
        }
    )*};
}

/// A member that exists to be measured.
#[cfg(feature = "lab")]
pub(super) const fn measured(kernel: Kernel) -> Kernel {
    Kernel { deploy: false, ..kernel }
}

/// The whole of a vector file: every ISA has the same members, so that they can be compared.
macro_rules! vector_file {
    ($vector:ty, $enable:literal, $isa:literal, $compare_requires:expr, $compare_enable:literal, $compare_isa:literal) => {
        #[cfg(feature = "lab")]
        use super::member::measured;
        use super::vector::*;
        use crate::kernel::Kernel;

        copies! { $vector, $enable, $isa;
            plain "" Shape::PLAIN, "four loads, four temporal stores";
            ends ".ends" Shape::PLAIN.ends(), "temporal, from both ends to the middle";
            nt ".nt" Shape::NT, "four loads, four non-temporal stores";
            nt_ends ".nt.ends" Shape::NT.ends(), "non-temporal, from both ends to the middle";
            nt_prefetch ".nt.pf512" Shape::NT.prefetch(Prefetch::Nta(512)),
                "non-temporal, prefetchnta 512 bytes ahead";
            nt_block4k ".nt.block4k" Shape::NT.prefetch(Prefetch::Block(4096)),
                "non-temporal, each 4 KiB touched before it is copied";
            nt_pages4 ".nt.pages4" Shape::NT.streams(4, 4096),
                "non-temporal, four neighbouring pages in turn";
            nt_backward ".nt.backward" Shape::NT.backward(),
                "non-temporal, from the end to the beginning";
        }

        #[cfg(feature = "lab")]
        copies! { $vector, $enable, $isa;
            group1 ".g1" Shape::PLAIN.group(1), "load and store in turn";
            group8 ".g8" Shape::PLAIN.group(8), "eight loads, then eight stores (seed 002.4)";
            group2 ".g2" Shape::PLAIN.group(2), "two loads, two stores";
            backward ".backward" Shape::PLAIN.backward(), "from the end to the beginning";
            prefetch ".pf512" Shape::PLAIN.prefetch(Prefetch::Nta(512)),
                "temporal, prefetchnta 512 bytes ahead";
            prefetch_t0 ".t0x512" Shape::PLAIN.prefetch(Prefetch::T0(512)),
                "temporal, prefetcht0 512 bytes ahead";
            block4k ".block4k" Shape::PLAIN.prefetch(Prefetch::Block(4096)),
                "temporal, each 4 KiB touched before it is copied";
            streams4 ".streams4" Shape::PLAIN.streams(4, 0),
                "temporal, four quarters of the buffer in turn";
            nt_far ".nt.t1x64k" Shape::NT.prefetch(Prefetch::T1(65536)),
                "non-temporal, prefetcht1 64 KiB ahead";
            nt_streams4 ".nt.streams4" Shape::NT.streams(4, 0),
                "non-temporal, four quarters of the buffer in turn";
            nt_streams8 ".nt.streams8" Shape::NT.streams(8, 0),
                "non-temporal, eight eighths of the buffer in turn";
            nt_group1 ".nt.g1" Shape::NT.group(1), "non-temporal, load and store in turn";
            nt_group2 ".nt.g2" Shape::NT.group(2), "non-temporal, two loads, two stores";
            nt_group8 ".nt.g8" Shape::NT.group(8), "non-temporal, eight loads, eight stores";
            nt_block512 ".nt.block512" Shape::NT.prefetch(Prefetch::Block(512)),
                "non-temporal, each 512 bytes touched first";
            nt_block1k ".nt.block1k" Shape::NT.prefetch(Prefetch::Block(1024)),
                "non-temporal, each 1 KiB touched first";
            nt_block2k ".nt.block2k" Shape::NT.prefetch(Prefetch::Block(2048)),
                "non-temporal, each 2 KiB touched first";
            nt_block8k ".nt.block8k" Shape::NT.prefetch(Prefetch::Block(8192)),
                "non-temporal, each 8 KiB touched first";
            nt_block16k ".nt.block16k" Shape::NT.prefetch(Prefetch::Block(16384)),
                "non-temporal, each 16 KiB touched first";
            nt_block32k ".nt.block32k" Shape::NT.prefetch(Prefetch::Block(32768)),
                "non-temporal, each 32 KiB touched first";
            nt_block64k ".nt.block64k" Shape::NT.prefetch(Prefetch::Block(65536)),
                "non-temporal, each 64 KiB touched first";
        }

        fills! { $vector, $enable, $isa;
            store "" Shape::PLAIN, "aligned temporal vector stores";
            stream ".nt" Shape::NT, "aligned non-temporal vector stores";
        }

        compares! { $vector, $compare_requires, $compare_enable, $compare_isa;
            direct "" 0, "four vectors at a time, no pre-check";
        }
        #[cfg(feature = "lab")]
        compares! { $vector, $compare_requires, $compare_enable, $compare_isa;
            pre16 ".pre16" 16, "16 bytes in integer registers before the vectors (seed 004.5)";
            pre32 ".pre32" 32, "32 bytes in integer registers before the vectors (seed 004.5)";
            pre64 ".pre64" 64, "64 bytes in integer registers before the vectors (seed 004.5)";
        }

        /// Kernels that the library may choose from.
        pub(crate) const ROWS: &[Kernel] = &[
            plain::COPY,
            ends::COPY,
            nt::COPY,
            nt_ends::COPY,
            nt_prefetch::COPY,
            nt_block4k::COPY,
            nt_pages4::COPY,
            nt_backward::COPY,
            plain::MOVE,
            ends::MOVE,
            nt::MOVE,
            nt_ends::MOVE,
            nt_prefetch::MOVE,
            nt_block4k::MOVE,
            nt_pages4::MOVE,
            nt_backward::MOVE,
            store::ROWS[0],
            stream::ROWS[0],
            store::ROWS[1],
            stream::ROWS[1],
            direct::ROWS[0],
            direct::ROWS[1],
            store::ROWS[2],
            stream::ROWS[2],
            store::ROWS[3],
            stream::ROWS[3],
        ];
        /// Kernels that exist only to be measured.
        #[cfg(feature = "lab")]
        pub(crate) const LAB_ROWS: &[Kernel] = &[
            measured(group1::COPY),
            measured(group8::COPY),
            measured(nt_far::COPY),
            measured(nt_streams4::COPY),
            measured(nt_streams4::MOVE),
            measured(nt_streams8::COPY),
            measured(group2::COPY),
            measured(backward::COPY),
            measured(prefetch::COPY),
            measured(prefetch_t0::COPY),
            measured(block4k::COPY),
            measured(streams4::COPY),
            measured(nt_group1::COPY),
            measured(nt_group2::COPY),
            measured(nt_group8::COPY),
            measured(nt_block512::COPY),
            measured(nt_block1k::COPY),
            measured(nt_block2k::COPY),
            measured(nt_block8k::COPY),
            measured(nt_block16k::COPY),
            measured(nt_block32k::COPY),
            measured(nt_block64k::COPY),
            measured(pre16::ROWS[0]),
            measured(pre32::ROWS[0]),
            measured(pre64::ROWS[0]),
            measured(pre16::ROWS[1]),
            measured(pre32::ROWS[1]),
            measured(pre64::ROWS[1]),
        ];
    };
}
