//! Speed of each adapter compared with `serde_json`: `cargo xtask bench decode`.
//!
//! The adapter receives the body in packets and returns checked domain events. `serde_json` parses
//! the JSON of each frame into a `Value`. Both run alternately in one thread, with the program's
//! allocator. Each output line has the wire, the content of the response, its size in bytes, and
//! the nanoseconds that `serde_json` and the adapter took.
//!
//! `beside_serde [TURNS [WIRE]]`

#![allow(clippy::print_stdout, reason = "the measurements are the output")]

mod answers;

use std::{error::Error, hint::black_box, time::Instant};

use answers::Answer;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Duration of one measurement: long compared with reading the clock, short compared with other
/// work of the machine.
const BATCH_NS: u128 = 3_000_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Returns the nanoseconds of one of `times` calls.
fn time_of(times: u32, mut once: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let start = Instant::now();
    for _ in 0..times {
        once()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(times))
}

/// Returns the number of calls in one batch.
fn batch_size(mut once: impl FnMut() -> Outcome<()>) -> Outcome<u32> {
    let start = Instant::now();
    let mut times = 0;
    while start.elapsed().as_nanos() < BATCH_NS {
        once()?;
        times += 1;
    }
    Ok(times)
}

fn adapter(answer: &Answer) -> Outcome<()> {
    answer.read()?;
    Ok(())
}

/// Parses the JSON of each frame.
fn values(answer: &Answer) -> Outcome<()> {
    for payload in answer.payloads() {
        black_box(serde_json::from_str::<Value>(payload)?);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    // `cargo bench` adds an argument.
    let mut arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    let turns: u32 = arguments.next().map_or(Ok(20), |turns| turns.parse())?;
    let wire = arguments.next();
    let mut answers = answers::all()?;
    answers.retain(|answer| wire.as_ref().is_none_or(|wire| answer.wire == wire));
    for answer in &answers {
        answer.check()?;
    }
    let batches = answers.iter().map(|answer| {
        Ok((
            batch_size(|| adapter(answer))?,
            batch_size(|| values(answer))?,
        ))
    });
    let batches = batches.collect::<Outcome<Vec<_>>>()?;
    for turn in 0..turns {
        for (answer, (ours, theirs)) in answers.iter().zip(&batches) {
            let (of_ours, of_theirs);
            // The order alternates.
            if turn % 2 == 0 {
                of_ours = time_of(*ours, || adapter(answer))?;
                of_theirs = time_of(*theirs, || values(answer))?;
            } else {
                of_theirs = time_of(*theirs, || values(answer))?;
                of_ours = time_of(*ours, || adapter(answer))?;
            }
            println!(
                "{}\t{}\t{}\t{of_theirs:.0}\t{of_ours:.0}",
                answer.wire,
                answer.about,
                answer.size()
            );
        }
    }
    Ok(())
}
