//! Parses arbitrary model text in arbitrary pieces. [`texts::check`] lists the invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_fuzz::texts;

fuzz_target!(|input: &[u8]| texts::check(input));
