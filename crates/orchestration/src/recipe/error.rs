//! Errors of recipe files.

/// An error in a recipe, with the path of the wrong value, such as `tools.allow[0]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", describe_location(path))]
pub struct RecipeError {
    /// Path of the wrong value. Empty if the whole recipe is wrong.
    pub path: String,
    /// Description of the error, for people.
    pub message: String,
}

impl RecipeError {
    pub(super) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

fn describe_location(path: &str) -> String {
    match path {
        "" | "." => String::new(),
        path => format!("`{path}`: "),
    }
}
