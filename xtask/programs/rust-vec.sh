# A Rust program on the system's allocator: a sieve in a fresh `vec![0; n]` per range, and a buffer
# per message.
set -eu
case $1 in
prepare)
    command -v rustc >/dev/null || { echo "no rustc"; exit 77; }
    cat >vectors.rs <<'RUST'
fn main() {
    let mut primes = 0usize;
    for round in 0..60usize {
        let n = 1_000_000 + 100_000 * (round % 20);
        let mut composite = vec![0u8; n];
        for p in 2..1 + (n as f64).sqrt() as usize {
            if composite[p] == 0 {
                composite[p * p..].iter_mut().step_by(p).for_each(|c| *c = 1);
            }
        }
        primes += composite[2..].iter().filter(|c| **c == 0).count();
    }
    let mut sum = 0u64;
    for message in 0..3000usize {
        let mut buffer = vec![0u8; 256 * 1024];
        let used = 1000 + message % 3000;
        buffer[..used].fill(message as u8);
        sum += buffer.iter().take(4096).map(|b| u64::from(*b)).sum::<u64>();
    }
    println!("{primes} {sum}");
}
RUST
    rustc -O -o vectors vectors.rs 2>/dev/null
    ;;
run) "$PREPARED/vectors" ;;
esac
