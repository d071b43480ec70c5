//! Renders Markdown at a terminal while it arrives.
//!
//! [`View`] collects the text of the growing block and draws the changed rows. [`rows`] renders a
//! block as rows.

mod inline;
mod rows;
mod table;
mod view;

pub(crate) use rows::Look;
pub(crate) use view::{Size, View};
