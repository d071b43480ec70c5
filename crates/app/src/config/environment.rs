//! A copy of the process environment, made once at the start.
//!
//! Code that depends on environment variables takes an [`Environment`], so that tests need not
//! change the variables of the process.

use std::{collections::HashMap, path::PathBuf};

/// Environment variables and the user's folders. `Debug` omits the values of variables, because
/// they may be API keys.
#[derive(Clone, Default, derive_more::Debug)]
pub(crate) struct Environment {
    #[debug("{}", variables.len())]
    variables: HashMap<String, String>,
    /// Folder of the user's configuration. `None` if the platform has no such folder.
    pub(crate) config_dir: Option<PathBuf>,
    /// Folder of the user's data, such as sessions. `None` if the platform has no such folder.
    pub(crate) data_dir: Option<PathBuf>,
    /// Folder of the audit file, if the user configures no other file. `None` if the platform has
    /// no such folder.
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) working_dir: PathBuf,
}

impl Environment {
    /// Copies the environment of this process. Omits variables that are not valid Unicode.
    pub(crate) fn from_process() -> std::io::Result<Self> {
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
            // Windows has no folder for state, so the data folder is used instead.
            state_dir: folders
                .map(|it| it.state_dir().unwrap_or_else(|| it.data_dir()))
                .map(|it| it.join("switchboard")),
            working_dir: std::env::current_dir()?,
        })
    }

    #[cfg(test)]
    pub(crate) fn from_variables<N: Into<String>, V: Into<String>>(
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

    /// Returns the value of a variable. An empty or blank value counts as unset.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name).map(String::as_str);
        value.filter(|value| !value.trim().is_empty())
    }

    pub(crate) fn variable_names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }
}
