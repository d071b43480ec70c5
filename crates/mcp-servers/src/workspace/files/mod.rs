//! Files of the workspace as text.

mod edit;
pub(super) mod list;
pub(super) mod load;
pub(super) mod logs;
pub(super) mod save;
