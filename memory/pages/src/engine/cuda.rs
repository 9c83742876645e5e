//! A GPU as engine: its copy engine zeroes host memory without CPU time. The driver is loaded when the engine is
//! made; without one, or without a device, there is no engine.
//!
//! Memory is registered, which pins it, in pieces of less than 512 GiB: a larger one is refused. A batch is a
//! `cuMemsetD32Async` for each range, in one stream. Who waits sleeps and asks: a wait of the driver's own has no
//! deadline, and a device may hang. What it has begun cannot be called back, so that `cancel` waits for it.

use super::{Cancelled, Engine, EngineError, Progress, Range, Token};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::format;
use std::string::{String, ToString as _};
use std::time::Duration;
use std::vec::Vec;

/// Bytes of a piece that is registered at once.
const PIECE: usize = 256 << 30;
/// `CU_MEMHOSTREGISTER_PORTABLE`: for all contexts.
const PORTABLE: c_uint = 1;
/// `CU_STREAM_NON_BLOCKING`: it waits for no other stream.
const APART: c_uint = 1;
/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: c_int = 600;

type Context = *mut c_void;
type Stream = *mut c_void;

/// Declares the driver's functions by name and type, and loads them.
macro_rules! driver {
    ($($field:ident = $name:literal ($($type:ty),*);)*) => {
        /// The functions that are called, of the CUDA driver interface.
        #[derive(Debug)]
        struct Driver {
            $($field: unsafe extern "C" fn($($type),*) -> c_int,)*
            /// Goes last: the functions are its.
            _library: Library,
        }

        impl Driver {
            fn load() -> Result<Driver, libloading::Error> {
                // SAFETY: the driver's initialisers have no demands on who loads it.
                let library = unsafe { Library::new("libcuda.so.1") }?;
                $(
                    // SAFETY: the type is that of the driver's interface; it is kept beside the library.
                    let $field = *unsafe { library.get($name) }?;
                )*
                Ok(Driver { $($field,)* _library: library })
            }
        }
    };
}

driver! {
    init = "cuInit" (c_uint);
    device = "cuDeviceGet" (*mut c_int, c_int);
    retain = "cuDevicePrimaryCtxRetain" (*mut Context, c_int);
    release = "cuDevicePrimaryCtxRelease_v2" (c_int);
    push = "cuCtxPushCurrent_v2" (Context);
    pop = "cuCtxPopCurrent_v2" (*mut Context);
    register = "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
    unregister = "cuMemHostUnregister" (*mut c_void);
    stream = "cuStreamCreate" (*mut Stream, c_uint);
    destroy = "cuStreamDestroy_v2" (Stream);
    query = "cuStreamQuery" (Stream);
    synchronize = "cuStreamSynchronize" (Stream);
    zero = "cuMemsetD32Async" (u64, c_uint, usize, Stream);
    text = "cuGetErrorString" (c_int, *mut *const c_char);
}

impl Driver {
    /// The meaning of a code.
    fn said(&self, code: c_int) -> String {
        let mut text = std::ptr::null();
        // SAFETY: a place for the text.
        unsafe { (self.text)(code, &raw mut text) };
        if text.is_null() {
            return format!("error {code}");
        }
        // SAFETY: a text of the driver's, which lives as long as it.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        format!("{text} (error {code})")
    }
}

/// Why there is no such engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// The driver's library is not there, or is another.
    #[error("no CUDA driver: {0}")]
    Driver(String),
    /// There is no device, or the driver refused.
    #[error("{call}: {said}")]
    Refused {
        /// The call.
        call: &'static str,
        /// Its answer.
        said: String,
    },
}

/// A GPU's copy engine, that of the first device which the driver shows (`CUDA_VISIBLE_DEVICES`).
#[derive(Debug)]
pub struct CudaEngine {
    driver: Driver,
    device: c_int,
    context: Context,
    stream: Stream,
    pieces: Vec<*mut c_void>,
    last: u64,
    /// The batch at hand, and whether a part of it was refused.
    running: Option<(Token, Option<EngineError>)>,
}

// SAFETY: contexts and streams are handles that any thread may use, one at a time.
unsafe impl Send for CudaEngine {}

fn checked(code: c_int) -> Result<(), EngineError> {
    if code == 0 { Ok(()) } else { Err(EngineError::Device(code)) }
}

impl CudaEngine {
    /// The engine of the first device.
    ///
    /// # Errors
    /// [`CudaError`]: there is none here.
    pub fn new() -> Result<CudaEngine, CudaError> {
        let driver = Driver::load().map_err(|error| CudaError::Driver(error.to_string()))?;
        let good = |call, code| match code {
            0 => Ok(()),
            code => Err(CudaError::Refused { call, said: driver.said(code) }),
        };
        let (mut device, mut context, mut stream) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: callable at any time.
        good("cuInit", unsafe { (driver.init)(0) })?;
        // SAFETY: a place for the device.
        good("cuDeviceGet", unsafe { (driver.device)(&raw mut device, 0) })?;
        // SAFETY: a device, and a place for its context.
        let retained = unsafe { (driver.retain)(&raw mut context, device) };
        good("cuDevicePrimaryCtxRetain", retained)?;
        let (pieces, last, running) = (Vec::new(), 0, None);
        let mut engine = CudaEngine { driver, device, context, stream, pieces, last, running };
        let made = engine.inside(|driver| {
            // SAFETY: a place for the stream.
            checked(unsafe { (driver.stream)(&raw mut stream, APART) })
        });
        engine.stream = stream;
        let refused = |error: EngineError| CudaError::Refused {
            call: "cuStreamCreate",
            said: error.to_string(),
        };
        made.map(|()| engine).map_err(refused)
    }

    /// Does something in the device's context.
    fn inside<T>(
        &self,
        work: impl FnOnce(&Driver) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        // SAFETY: a context that is retained.
        checked(unsafe { (self.driver.push)(self.context) })?;
        let done = work(&self.driver);
        let mut before = std::ptr::null_mut();
        // SAFETY: a place for the context that was pushed.
        unsafe { (self.driver.pop)(&raw mut before) };
        done
    }
}

// SAFETY: the device writes to the ranges of the batch at hand, in the order of one stream; `drop` waits for
// the stream and unregisters the memory, after which the device has no way to it.
unsafe impl Engine for CudaEngine {
    fn uses_cpu(&self) -> bool {
        false
    }

    unsafe fn adopt(&mut self, memory: Range) -> Result<(), EngineError> {
        let mut pieces = Vec::new();
        let registered = self.inside(|driver| {
            (0..memory.length).step_by(PIECE).try_for_each(|offset| {
                let start = memory.start.wrapping_add(offset).cast::<c_void>();
                let length = PIECE.min(memory.length - offset);
                // SAFETY: mapped for as long as this engine is there: the caller's promise.
                checked(unsafe { (driver.register)(start, length, PORTABLE) })?;
                pieces.push(start);
                Ok(())
            })
        });
        self.pieces.append(&mut pieces);
        registered
    }

    unsafe fn submit(&mut self, batch: &[Range]) -> Result<Token, EngineError> {
        if self.running.is_some() {
            return Err(EngineError::Busy);
        }
        let mut begun = 0;
        let submitted = self.inside(|driver| {
            batch.iter().try_for_each(|range| {
                let (start, words) = (range.start as u64, range.length / 4);
                // SAFETY: registered memory, which is the device's until the batch has ended.
                checked(unsafe { (driver.zero)(start, 0, words, self.stream) })?;
                begun += 1;
                Ok(())
            })
        });
        // Work begun before a refusal ends before the ranges are released.
        let refused = submitted.err();
        if let (0, Some(error)) = (begun, refused) {
            return Err(error);
        }
        self.last += 1;
        self.running = Some((Token(self.last), refused));
        Ok(Token(self.last))
    }

    fn poll(&mut self, batch: Token) -> Progress {
        let Some((_, refused)) = self.running.filter(|(token, _)| *token == batch) else {
            return Progress::Fault(EngineError::Unknown);
        };
        let asked = self.inside(|driver| {
            // SAFETY: this engine's own stream.
            match unsafe { (driver.query)(self.stream) } {
                NOT_READY => Ok(false),
                code => checked(code).map(|()| true),
            }
        });
        if asked == Ok(false) {
            return Progress::Pending;
        }
        self.running = None;
        match asked.err().or(refused) {
            None => Progress::Done,
            Some(error) => Progress::Fault(error),
        }
    }

    fn cancel(&mut self, batch: Token, deadline: Duration) -> Cancelled {
        match self.wait(batch, deadline) {
            Progress::Pending => Cancelled::StillRunning,
            _ => Cancelled::Stopped,
        }
    }

    fn stop(&mut self, deadline: Duration) -> Cancelled {
        self.running.map_or(Cancelled::Stopped, |(batch, _)| self.cancel(batch, deadline))
    }
}

impl Drop for CudaEngine {
    fn drop(&mut self) {
        let _ = self.inside(|driver| {
            if !self.stream.is_null() {
                // SAFETY: this engine's own stream.
                unsafe { (driver.synchronize)(self.stream) };
                // SAFETY: as above, and used no more.
                unsafe { (driver.destroy)(self.stream) };
            }
            for piece in &self.pieces {
                // SAFETY: registered by this engine.
                unsafe { (driver.unregister)(*piece) };
            }
            Ok(())
        });
        // SAFETY: retained by `new`.
        unsafe { (self.driver.release)(self.device) };
    }
}
