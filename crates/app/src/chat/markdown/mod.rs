//! Renders Markdown at a terminal while it arrives.
//!
//! [`blocks::Splitter`] splits the text into blocks, [`rows::rows`] renders a block as rows, and
//! [`View`] draws the changed rows.

mod blocks;
mod inline;
mod rows;
mod table;
mod view;

pub(crate) use rows::Look;
pub(crate) use view::{Size, View};
