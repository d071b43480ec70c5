//! Any JSON as a schema, and any JSON as the value that is checked. The laws are those of
//! [`schemas::check_validation`].
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_fuzz::schemas;

fuzz_target!(|input: &[u8]| schemas::check_validation(input));
