//! Recipes: where they are found, and reading them.
//!
//! A recipe is a file (YAML, JSON or TOML) in `recipes/` of the working directory or in `recipes/` of the
//! user's configuration folder, or one of those that ship. The first one of a name counts, in this
//! order. In recipes no variables are filled in: prompts may hold `${…}` that is meant as it stands.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use serde_json::Value;
use switchboard_domain::nearest::{did_you_mean, nearest};
use switchboard_orchestration::recipe::{Recipe, RecipeError, SHIPPED};

use crate::{
    config::{self, ConfigError},
    environment::Environment,
};

/// The folder that holds recipes, in the working directory and in the configuration folder.
pub const FOLDER: &str = "recipes";
/// The endings that a recipe's file may have.
const ENDINGS: [&str; 4] = ["yaml", "yml", "json", "toml"];

/// A recipe that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The recipe.
    pub recipe: Recipe,
    /// Where it comes from.
    pub source: Source,
    /// Its file as it stands.
    pub text: String,
}

/// Where a recipe comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// From this file.
    File(PathBuf),
    /// It ships with the program.
    Shipped,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(f),
            Self::Shipped => f.write_str("shipped"),
        }
    }
}

/// Why there is no recipe.
#[derive(Debug, thiserror::Error)]
pub enum RecipesError {
    /// The file cannot be read or is not what its name says.
    #[error(transparent)]
    File(#[from] ConfigError),
    /// What stands in the file is no recipe.
    #[error("{file}: {error}", file = file.display())]
    Recipe {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        error: RecipeError,
    },
    /// There is none of this name.
    #[error(
        "there is no recipe `{name}`{}; there are: {}. A recipe of your own is a file such as \
         recipes/{name}.yaml",
        did_you_mean(nearest.as_deref()),
        known.join(", ")
    )]
    NotFound {
        /// The name.
        name: String,
        /// The known one most like it.
        nearest: Option<String>,
        /// All that there are.
        known: Vec<String>,
    },
    /// Two files of one folder have the same name.
    #[error("{} and {} are both recipes of the same name: keep one of them", first.display(), second.display())]
    Ambiguous {
        /// The one.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A folder of recipes cannot be read.
    #[error("{folder}: cannot be read: {source}", folder = folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Finds a recipe by its name, or reads it from a file: what has a path or one of the endings of
/// recipes is a file, relative to the working directory.
pub fn find(name_or_file: &str, environment: &Environment) -> Result<Found, RecipesError> {
    if is_file(name_or_file) {
        return read(&environment.working_dir.join(name_or_file));
    }
    find_by_name(name_or_file, environment)
}

/// Finds a recipe by its name alone. Nothing outside of the folders of recipes is read, whatever the
/// name is: for surfaces on which somebody else says it.
pub fn find_by_name(name: &str, environment: &Environment) -> Result<Found, RecipesError> {
    for folder in folders(environment) {
        let files = files(&folder)?;
        let mut named = files.iter().filter(|file| stem(file) == Some(name));
        if let Some(first) = named.next() {
            if let Some(second) = named.next() {
                return Err(RecipesError::Ambiguous {
                    first: first.clone(),
                    second: second.clone(),
                });
            }
            return read(first);
        }
        // A file may have another name than its recipe. One that is broken is somebody else's then.
        let inside = files
            .iter()
            .filter_map(|file| read(file).ok())
            .find(|found| found.recipe.name == name);
        if let Some(found) = inside {
            return Ok(found);
        }
    }
    match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        Some((name, text)) => shipped(name, text),
        None => Err(not_found(name, environment)),
    }
}

/// A recipe that can be named, or a file that should be one.
#[derive(Debug)]
pub struct Entry {
    /// The name to find it by.
    pub name: String,
    /// The recipe, or what is wrong with it.
    pub recipe: Result<Recipe, RecipesError>,
    /// Where it comes from.
    pub source: Source,
}

/// All recipes that can be named, each name once.
pub fn list(environment: &Environment) -> Result<Vec<Entry>, RecipesError> {
    let mut entries: Vec<Entry> = Vec::new();
    for folder in folders(environment) {
        for file in files(&folder)? {
            let name = stem(&file).unwrap_or_default().to_owned();
            let recipe = read(&file).map(|found| found.recipe);
            entries.push(Entry {
                name,
                recipe,
                source: Source::File(file),
            });
        }
    }
    for (name, text) in SHIPPED {
        entries.push(Entry {
            name: name.to_owned(),
            recipe: shipped(name, text).map(|found| found.recipe),
            source: Source::Shipped,
        });
    }
    let mut seen: Vec<String> = Vec::new();
    entries.retain(|entry| {
        let is_new = !seen.contains(&entry.name);
        seen.push(entry.name.clone());
        is_new
    });
    Ok(entries)
}

fn not_found(name: &str, environment: &Environment) -> RecipesError {
    let entries = list(environment).unwrap_or_default();
    let known: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    RecipesError::NotFound {
        name: name.to_owned(),
        nearest: nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
        known,
    }
}

fn is_file(name: &str) -> bool {
    name.contains(['/', '\\']) || has_ending(Path::new(name))
}

fn has_ending(file: &Path) -> bool {
    file.extension().is_some_and(|ending| {
        ENDINGS
            .iter()
            .any(|known| ending.eq_ignore_ascii_case(known))
    })
}

fn stem(file: &Path) -> Option<&str> {
    file.file_stem()?.to_str()
}

fn folders(environment: &Environment) -> Vec<PathBuf> {
    [
        Some(&environment.working_dir),
        environment.config_dir.as_ref(),
    ]
    .into_iter()
    .flatten()
    .map(|folder| folder.join(FOLDER))
    .collect()
}

/// The files of a folder that are recipes by their names, in the order of these.
fn files(folder: &Path) -> Result<Vec<PathBuf>, RecipesError> {
    let failed = |source| RecipesError::Folder {
        folder: folder.to_owned(),
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(Vec::new()),
                _ => Err(failed(error)),
            };
        }
    };
    let mut files = Vec::new();
    for entry in entries {
        let file = entry.map_err(failed)?.path();
        let is_hidden = stem(&file).is_none_or(|stem| stem.starts_with('.'));
        if has_ending(&file) && !is_hidden && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<Found, RecipesError> {
    let text = config::text_of(file)?;
    parsed(file, text, Source::File(file.to_owned()))
}

fn shipped(name: &str, text: &str) -> Result<Found, RecipesError> {
    let file = PathBuf::from(format!("{name}.yaml"));
    parsed(&file, text.to_owned(), Source::Shipped)
}

fn parsed(file: &Path, text: String, source: Source) -> Result<Found, RecipesError> {
    let mut value = config::from_text(file, &text)?;
    // The file's name is a name as well.
    if let (Value::Object(fields), Some(stem)) = (&mut value, stem(file))
        && !["name", "id", "uniqueId", "unique_id", "unique-id"]
            .iter()
            .any(|key| fields.contains_key(*key))
    {
        fields.insert("name".to_owned(), stem.into());
    }
    let recipe = Recipe::from_value(&value).map_err(|error| RecipesError::Recipe {
        file: file.to_owned(),
        error,
    })?;
    Ok(Found {
        recipe,
        source,
        text,
    })
}

#[cfg(test)]
#[path = "recipes_tests.rs"]
mod tests;
