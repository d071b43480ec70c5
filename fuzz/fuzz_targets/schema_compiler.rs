//! Compiles arbitrary JSON as a schema for every dialect. [`schemas::check`] lists the invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_fuzz::schemas;

fuzz_target!(|input: &[u8]| schemas::check(input));
