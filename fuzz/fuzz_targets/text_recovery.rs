//! Any text of a model, in any pieces. The laws are those of [`texts::check`].
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_fuzz::texts;

fuzz_target!(|input: &[u8]| texts::check(input));
