//! The application: not yet wired.

fn main() {}
