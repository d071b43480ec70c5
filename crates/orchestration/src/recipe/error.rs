//! What is wrong with a recipe.

use switchboard_domain::nearest::did_you_mean;

/// What is wrong with a recipe, and where. Places are written with dots: `tools.allow`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// A key that does not exist.
    #[error(
        "`{path}` is no known key{}; there are: {}",
        did_you_mean(nearest.as_deref()),
        known.join(", ")
    )]
    UnknownKey {
        /// Where.
        path: String,
        /// The known key most like it.
        nearest: Option<String>,
        /// All known keys at this place.
        known: Vec<String>,
    },
    /// A value of the wrong type or range.
    #[error("`{path}` must be {expected}")]
    WrongValue {
        /// Where; `the recipe` for the whole document.
        path: String,
        /// What it must be.
        expected: String,
    },
    /// A key that must be there is not.
    #[error("`{path}` is missing")]
    Missing {
        /// Which.
        path: String,
    },
    /// The same thing is said twice, under two of its names.
    #[error("`{first}` and `{second}` say the same thing: keep one of them")]
    Twice {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// Two settings that do not go together.
    #[error("{0}")]
    Conflict(String),
}

impl RecipeError {
    pub(super) fn wrong(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::WrongValue {
            path: path.into(),
            expected: expected.into(),
        }
    }
}
