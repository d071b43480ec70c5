//! Files and databases that store a user's data between runs of the program.

pub(crate) mod approval_decisions;
pub(crate) mod private_file;
pub(crate) mod recipes;
pub(crate) mod sessions;
