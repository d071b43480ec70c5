//! How fast an adapter reads its wire beside `serde_json`, which reads what the frames hold into
//! `Value`s: `cargo xtask bench decode`.
//!
//! The adapter gets the body in pieces of a packet and makes the domain's events, checked against
//! their grammar; `serde_json` gets each frame's JSON cut out and ready. Both in turns, in one
//! thread, with the program's allocator. A line for each turn: the wire, what the answer is made
//! of, bytes of the body, and the nanoseconds that `serde_json` and the adapter took for it.
//!
//! `beside_serde [TURNS [WIRE]]`; `… 0 WIRE` reads that wire's answers with the adapter only, for a
//! profiler.

#![allow(
    clippy::print_stdout,
    reason = "the measurements are what this program is for"
)]

mod answers;

use std::{error::Error, hint::black_box, time::Instant};

use answers::Answer;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long one side is measured at a time: long against what a clock costs, short against what
/// else the machine does.
const BATCH_NS: u128 = 3_000_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Nanoseconds that one of so many took.
fn each(times: u32, mut once: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let start = Instant::now();
    for _ in 0..times {
        once()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(times))
}

/// How often something is done in one batch.
fn times(mut once: impl FnMut() -> Outcome<()>) -> Outcome<u32> {
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

/// Reads what the frames hold into values that know nothing of the wire, one after the other.
fn values(answer: &Answer) -> Outcome<()> {
    for payload in answer.payloads() {
        black_box(serde_json::from_str::<Value>(payload)?);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    // `cargo bench` adds a word of its own.
    let mut arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    let turns: u32 = arguments.next().map_or(Ok(20), |turns| turns.parse())?;
    let wire = arguments.next();
    let mut answers = answers::all();
    answers.retain(|answer| wire.as_ref().is_none_or(|wire| answer.wire == wire));
    if turns == 0 {
        return answers
            .iter()
            .try_for_each(|answer| (0..3_000).try_for_each(|_| adapter(answer)));
    }
    for answer in &answers {
        answer.check()?;
    }
    let batches = answers
        .iter()
        .map(|answer| Ok((times(|| adapter(answer))?, times(|| values(answer))?)));
    let batches = batches.collect::<Outcome<Vec<_>>>()?;
    for turn in 0..turns {
        for (answer, (ours, theirs)) in answers.iter().zip(&batches) {
            let (of_ours, of_theirs);
            // Neither always comes first.
            if turn % 2 == 0 {
                of_ours = each(*ours, || adapter(answer))?;
                of_theirs = each(*theirs, || values(answer))?;
            } else {
                of_theirs = each(*theirs, || values(answer))?;
                of_ours = each(*ours, || adapter(answer))?;
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
