//! The kernel table, drawn.

use crate::Table;
use crate::rows::sorted;
use cachewise_kernels::{Features, Kernel, Operation};

/// One line per operation: how many kernels it has, and by which instructions.
pub fn summary(kernels: &[&Kernel], available: Features) -> Table {
    let runnable = |kernel: &&&Kernel| kernel.runs_on(available);
    let of =
        |operation: Operation| kernels.iter().filter(move |kernel| kernel.operation() == operation);
    let mut table = Table::of(
        format!(
            "{} kernels, {} of them run on this CPU",
            kernels.len(),
            kernels.iter().filter(runnable).count()
        ),
        "operation | >kernels | >run here | by",
    );
    for operation in Operation::ALL {
        let techniques = of(operation).filter_map(|kernel| kernel.name.split('.').nth(1));
        let techniques = sorted(techniques).join(" ");
        let counts = [of(operation).count(), of(operation).filter(runnable).count()];
        let [all, here] = counts.map(|count| count.to_string());
        table.push(vec![operation.name().to_owned(), all, here, techniques]);
    }
    table
}

/// One line per kernel: name, what it stores, how it loads, whether the library may choose it,
/// whether this CPU can run it, aliases, meaning.
pub fn list(kernels: &[&Kernel], available: Features) -> Table {
    let runnable = kernels.iter().filter(|kernel| kernel.runs_on(available)).count();
    let mut table = Table::of(
        format!("{} kernels, {runnable} of them run on this CPU", kernels.len()),
        "name | aliases | store | prefetch | >group | registers | deploy | here | meaning",
    );
    for kernel in kernels {
        let missing = kernel.requires.missing_from(available);
        table.push(vec![
            kernel.name.to_owned(),
            kernel.aliases.join(" "),
            kernel.store.name().to_owned(),
            kernel.prefetch.to_string(),
            if kernel.grouping == 0 { "-".to_owned() } else { kernel.grouping.to_string() },
            kernel.registers.name().to_owned(),
            if kernel.deploy { "yes" } else { "no" }.to_owned(),
            if missing.is_empty() { "yes".to_owned() } else { format!("lacks {missing}") },
            kernel.about.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_kernels::find;

    #[test]
    fn a_kernel_the_cpu_lacks_is_listed_with_the_reason() {
        let kernels = [find("copy.bytes"), find("copy.avx.nt")].map(|kernel| kernel.expect("row"));
        let table = list(&kernels, Features::SSE2);
        assert_eq!(table.caption, "2 kernels, 1 of them run on this CPU");
        assert_eq!(table.rows[0][7], "yes");
        assert_eq!(table.rows[1][7], "lacks avx");
        assert_eq!(table.rows[1][2], "nt");
    }
}
