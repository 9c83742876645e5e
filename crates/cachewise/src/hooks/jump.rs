//! The functions at a hooked slot: each jumps to the hook of its operation. Apart from who installs the hooks,
//! since the table's own functions are above these, and whoever asks that the table be filled is above those.

use core::arch::naked_asm;
use core::sync::atomic::AtomicPtr;

/// The hooks, in the order of [`OPERATIONS`](super::OPERATIONS).
pub(crate) static HOOKS: [AtomicPtr<()>; 4] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 4];

macro_rules! jumps {
    ($($name:ident($($argument:ident: $type:ty),*) = $at:literal;)*) => {$(
        /// # Safety
        /// As the kernels of its operation.
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> *mut u8 {
            naked_asm!("jmp [rip + {hooks} + {at}]", hooks = sym HOOKS, at = const $at * 8)
        }
    )*};
}

jumps! {
    copy(dst: *mut u8, src: *const u8, n: usize) = 0;
    r#move(dst: *mut u8, src: *const u8, n: usize) = 1;
    fill(dst: *mut u8, byte: i32, n: usize) = 2;
    zero(dst: *mut u8, n: usize) = 3;
}
