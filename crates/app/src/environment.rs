//! The environment variables, taken once at the start.
//!
//! Everything that depends on them takes an [`Environment`] as a value: tests need not change the
//! process, which is not theirs alone, and what is read where stays visible.

use std::{collections::HashMap, fmt, path::PathBuf};

/// A copy of the environment. `Debug` shows names only: values may be keys.
#[derive(Clone, Default)]
pub struct Environment {
    variables: HashMap<String, String>,
    /// Where the user's configuration lives, if the platform has such a place.
    pub config_dir: Option<PathBuf>,
    /// Where what the program keeps for the user lives, if the platform has such a place.
    pub data_dir: Option<PathBuf>,
    /// Where what the program writes down of its work lives, if the platform has such a place.
    pub state_dir: Option<PathBuf>,
    /// The working directory.
    pub working_dir: PathBuf,
}

impl Environment {
    /// Copies that of this process. Variables that are not Unicode are left out.
    pub fn of_this_process() -> std::io::Result<Self> {
        use etcetera::BaseStrategy as _;
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let folders = etcetera::choose_base_strategy().ok();
        let folders = folders.as_ref();
        Ok(Self {
            variables,
            config_dir: folders.map(|it| it.config_dir().join("switchboard")),
            data_dir: folders.map(|it| it.data_dir().join("switchboard")),
            // Where there is no such place, as on Windows, it is the one for data.
            state_dir: folders
                .map(|it| it.state_dir().unwrap_or_else(|| it.data_dir()))
                .map(|it| it.join("switchboard")),
            working_dir: std::env::current_dir()?,
        })
    }

    /// An environment of these variables alone.
    pub fn of<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        Self {
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            ..Self::default()
        }
    }

    /// The value of a variable. One that is empty or blank counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.trim().is_empty())
    }

    /// The names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.len())
            .field("config_dir", &self.config_dir)
            .field("data_dir", &self.data_dir)
            .field("state_dir", &self.state_dir)
            .field("working_dir", &self.working_dir)
            .finish()
    }
}
