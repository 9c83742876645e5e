//! Follows a kernel's control flow and keeps what each path has done to the machine's state.

use super::image::{Image, Symbol};
use iced_x86::{
    Code, Decoder, DecoderOptions, FastFormatter, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
};
use std::collections::{BTreeMap, BTreeSet};

/// Changes of state that a path has made and not yet undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State(u8);

impl State {
    pub const CLEAN: State = State(0);
    /// Non-temporal stores that no fence has followed.
    pub const UNFENCED: State = State(1);
    /// MMX registers used without `emms`.
    pub const MMX: State = State(2);
    /// Upper halves of vector registers used without `vzeroupper`.
    pub const UPPER: State = State(4);
    /// `std` without `cld`.
    pub const BACKWARD: State = State(8);

    pub fn contains(self, other: State) -> bool {
        self.0 & other.0 == other.0
    }

    fn with(self, other: State) -> State {
        State(self.0 | other.0)
    }

    fn without(self, other: State) -> State {
        State(self.0 & !other.0)
    }

    fn after(self, code: &Instruction) -> State {
        match code.mnemonic() {
            Mnemonic::Sfence | Mnemonic::Mfence => self.without(State::UNFENCED),
            Mnemonic::Emms => self.without(State::MMX),
            Mnemonic::Vzeroupper | Mnemonic::Vzeroall => self.without(State::UPPER),
            Mnemonic::Std => self.with(State::BACKWARD),
            Mnemonic::Cld => self.without(State::BACKWARD),
            Mnemonic::Clzero => self.with(State::UNFENCED),
            _ => {
                let mut state = self;
                if super::is_nt_store(code, None) {
                    state = state.with(State::UNFENCED);
                }
                let mut factory = InstructionInfoFactory::new();
                for used in factory.info(code).used_registers() {
                    let register = used.register();
                    if register.is_mm() {
                        state = state.with(State::MMX);
                    }
                    // The information names the widest register that a write clears, so ask the
                    // operands: VEX code on xmm registers leaves the upper halves zero.
                    let wide = register.is_ymm() || register.is_zmm();
                    if wide && is_write(used.access()) && has_wide_operand(code) {
                        state = state.with(State::UPPER);
                    }
                }
                state
            }
        }
    }
}

fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn has_wide_operand(code: &Instruction) -> bool {
    (0..code.op_count()).any(|at| {
        code.op_kind(at) == OpKind::Register
            && (code.op_register(at).is_ymm() || code.op_register(at).is_zmm())
    })
}

/// An instruction as text, with its address.
pub fn show(code: &Instruction) -> String {
    let mut text = String::new();
    FastFormatter::new().format(code, &mut text);
    format!("{:#x}: {text}", code.ip())
}

/// All instructions that a kernel can reach.
pub struct Routine {
    /// Each function walked, by the address it was entered at.
    functions: BTreeMap<u64, Function>,
    entry: u64,
}

/// Instructions reachable from one entry by jumps, calls stepped over.
#[derive(Default)]
struct Function {
    instructions: BTreeMap<u64, Instruction>,
    /// Targets of each jump through a table.
    tables: BTreeMap<u64, Vec<u64>>,
}

impl Routine {
    /// Walks from a kernel's entry point; refuses what leaves the kernels crate.
    pub fn walk(image: &Image, entry: *const u8) -> Result<Routine, String> {
        let entry = image.address_of(entry);
        let mut functions = BTreeMap::new();
        let mut waiting = vec![entry];
        while let Some(start) = waiting.pop() {
            if functions.contains_key(&start) {
                continue;
            }
            let function = Function::walk(image, start)?;
            waiting.extend(function.instructions.values().filter_map(call_target));
            functions.insert(start, function);
        }
        Ok(Routine { functions, entry })
    }

    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.functions.values().flat_map(|function| function.instructions.values())
    }

    /// Returns the state that some path has left where the kernel returns.
    pub fn state_at_return(&self) -> State {
        self.flow(self.entry, State::CLEAN, 0)
    }

    /// The union over all paths from a function's start to its returns.
    fn flow(&self, start: u64, entered_with: State, depth: usize) -> State {
        assert!(depth < 16, "kernels do not recurse");
        let function = &self.functions[&start];
        let mut before = BTreeMap::from([(start, entered_with)]);
        let mut waiting = BTreeSet::from([start]);
        let mut at_return = State::CLEAN;
        while let Some(address) = waiting.pop_first() {
            let code = &function.instructions[&address];
            let state = match call_target(code) {
                Some(callee) => self.flow(callee, before[&address], depth + 1),
                None => before[&address].after(code),
            };
            if code.flow_control() == FlowControl::Return {
                at_return = at_return.with(state);
            }
            for next in function.successors(code) {
                let known = before.get(&next).copied();
                let joined = known.unwrap_or_default().with(state);
                if known != Some(joined) {
                    before.insert(next, joined);
                    waiting.insert(next);
                }
            }
        }
        at_return
    }
}

fn call_target(code: &Instruction) -> Option<u64> {
    let direct =
        code.flow_control() == FlowControl::Call && code.op0_kind() == OpKind::NearBranch64;
    direct.then(|| code.near_branch_target())
}

impl Function {
    /// Walks from `start` along all jumps, those into other functions of the crate included.
    fn walk(image: &Image, start: u64) -> Result<Function, String> {
        let mut function = Function::default();
        let mut waiting = vec![start];
        while let Some(address) = waiting.pop() {
            if function.instructions.contains_key(&address) {
                continue;
            }
            let code = decode(image, address)?;
            function.instructions.insert(address, code);
            match code.flow_control() {
                FlowControl::UnconditionalBranch => must_be_ours(image, &code)?,
                FlowControl::Call if call_target(&code).is_some() => must_be_ours(image, &code)?,
                FlowControl::IndirectBranch => {
                    let targets = jump_table(image, &code, &function.instructions);
                    if targets.is_empty() {
                        return Err(outside(image, &code));
                    }
                    function.tables.insert(address, targets);
                }
                FlowControl::Next
                | FlowControl::ConditionalBranch
                | FlowControl::Return
                | FlowControl::Exception => {}
                _ => return Err(outside(image, &code)),
            }
            waiting.extend(function.successors(&code));
        }
        Ok(function)
    }

    /// Addresses where control can go next, calls stepped over.
    fn successors(&self, code: &Instruction) -> Vec<u64> {
        match code.flow_control() {
            FlowControl::Next | FlowControl::Call => vec![code.next_ip()],
            FlowControl::ConditionalBranch => vec![code.near_branch_target(), code.next_ip()],
            FlowControl::UnconditionalBranch => vec![code.near_branch_target()],
            FlowControl::IndirectBranch => self.tables[&code.ip()].clone(),
            _ => vec![],
        }
    }
}

fn decode(image: &Image, address: u64) -> Result<Instruction, String> {
    let bytes = image.bytes(address);
    let code = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    if code.code() == Code::INVALID {
        return Err(format!("no instruction at {address:#x}"));
    }
    Ok(code)
}

fn must_be_ours(image: &Image, code: &Instruction) -> Result<(), String> {
    match image.symbol(code.near_branch_target()) {
        Some(symbol) if symbol.is_ours() => Ok(()),
        _ => Err(outside(image, code)),
    }
}

/// The complaint about a call or jump that leaves the crate, with the name of its target.
fn outside(image: &Image, code: &Instruction) -> String {
    let direct = code.op0_kind() == OpKind::NearBranch64;
    let name = if direct {
        image.symbol(code.near_branch_target()).map(|symbol| symbol.name.as_str())
    } else if code.is_ip_rel_memory_operand() {
        image.import(code.ip_rel_memory_address())
    } else {
        None
    };
    format!("leaves the kernels crate for {}: {}", name.unwrap_or("an unknown place"), show(code))
}

/// The targets of `jmp register` through a table of offsets that a `lea register, [rip + table]`
/// before it names, as compilers lay out a `match`: all entries that stay within the function.
fn jump_table(image: &Image, jump: &Instruction, seen: &BTreeMap<u64, Instruction>) -> Vec<u64> {
    let Some(Symbol { addresses, .. }) = image.symbol(jump.ip()) else { return vec![] };
    if jump.op0_kind() != OpKind::Register || jump.op0_register() == Register::None {
        return vec![];
    }
    let tables = seen.range(addresses.start..jump.ip()).rev().map(|(_, code)| code);
    let table = tables
        .filter(|code| code.mnemonic() == Mnemonic::Lea && code.is_ip_rel_memory_operand())
        .map(Instruction::ip_rel_memory_address)
        .find(|table| !addresses.contains(table));
    let Some(table) = table else { return vec![] };
    let entries = image.bytes(table).chunks_exact(4);
    let offsets = entries.map(|entry| i32::from_le_bytes(entry.try_into().expect("4 bytes")));
    offsets
        .map(|offset| table.wrapping_add_signed(offset.into()))
        .take_while(|target| addresses.contains(target))
        .collect()
}
