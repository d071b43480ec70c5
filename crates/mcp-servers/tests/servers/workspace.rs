//! The server `workspace`, as a client sees it.

mod commands;
mod confinement;
mod data;
mod files;
mod listing;
mod support;
