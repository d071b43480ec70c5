//! Markdown at a terminal, while it is still being written.
//!
//! [`Splitter`] cuts the text into blocks at the ends of its lines, [`rows`] makes a block rows of a terminal,
//! and [`View`] draws what changed of them.

mod blocks;
mod inline;
mod rows;
mod table;
mod view;

pub(crate) use rows::Look;
pub(crate) use view::{Size, View};
