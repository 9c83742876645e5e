# Instances of a virtual machine, as WebAssembly runtimes make them: each has a memory of its own, which is written here
# and there, a table and a stack, and is dropped after a short computation.
set -eu
. "$COMMON"
case $1 in
prepare)
    need rustc
    cat >instances.rs <<'RUST'
struct Instance {
    memory: Vec<u8>,
    table: Vec<u64>,
    stack: Vec<u64>,
}

impl Instance {
    fn new(number: usize) -> Instance {
        Instance { memory: vec![0; (4 + number % 5) << 16], table: vec![number as u64; 4096], stack: Vec::new() }
    }

    fn run(&mut self, seed: u64) -> u64 {
        let mut state = seed | 1;
        for _ in 0..3000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (state >> 33) as usize;
            let length = self.memory.len();
            self.memory[at % length] = self.memory[at % length].wrapping_add(at as u8);
            self.stack.push(self.table[at % 4096] ^ state);
        }
        self.stack.iter().fold(0, |sum, word| sum ^ word)
    }
}

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10);
    let sum = (0..count).fold(0u64, |sum, number| sum.wrapping_mul(31).wrapping_add(Instance::new(number).run(number as u64)));
    println!("{sum}");
}
RUST
    rustc -O -o instances instances.rs 2>/dev/null
    ;;
run) "$PREPARED/instances" "$(part 9000)" ;;
esac
