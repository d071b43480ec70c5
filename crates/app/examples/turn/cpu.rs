//! Selects the CPUs on which the two sides of a benchmark run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Outcome;

/// Returns two CPU numbers: one for the benchmark process and one for the servers that it starts.
/// Both numbers are equal if only one CPU is available.
pub(crate) fn choose_cpus() -> Outcome<[usize; 2]> {
    let allowed = sched_getaffinity(None)?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let first = cpus.next().ok_or("no CPU to run on")?;
    Ok([first, cpus.next().unwrap_or(first)])
}

/// Pins this thread and the processes that it starts to one CPU.
pub(crate) fn pin_thread_to_cpu(cpu: usize) -> Outcome<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}
