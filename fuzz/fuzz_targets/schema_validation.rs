//! Validates arbitrary JSON against an arbitrary schema. [`schemas::check_validation`] lists the
//! invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_fuzz::schemas;

fuzz_target!(|input: &[u8]| schemas::check_validation(input));
