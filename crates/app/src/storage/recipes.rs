//! Finds and reads recipes.
//!
//! A recipe is a file (YAML, JSON or TOML) in `recipes/` of the working directory or of the user's
//! configuration folder, or a recipe that ships with the program. The first one with a name is
//! used. Variables are not expanded, because prompts may contain a literal `${…}`.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail};
use serde_json::Value;
use switchboard_orchestration::recipe::{Recipe, SHIPPED};

use crate::{
    config::{self, environment::Environment},
    run_session::failure::available,
};

/// The name of recipe folders.
pub(crate) const FOLDER: &str = "recipes";
/// Extensions of recipe files.
const ENDINGS: [&str; 4] = ["yaml", "yml", "json", "toml"];

/// A recipe and its source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) recipe: Recipe,
    pub(crate) source: Source,
    /// The content of its file.
    pub(crate) text: String,
}

/// The source of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
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

/// Finds a recipe by name, or reads a file. A value with a path or an extension is a file, relative
/// to the working directory.
pub(crate) fn find(name_or_file: &str, environment: &Environment) -> anyhow::Result<Found> {
    if is_file(name_or_file) {
        return read(&environment.working_dir.join(name_or_file));
    }
    find_by_name(name_or_file, environment)
}

/// Finds a recipe by name only. Reads nothing outside the recipe folders, so that remote clients
/// may give the name.
pub(crate) fn find_by_name(name: &str, environment: &Environment) -> anyhow::Result<Found> {
    for folder in folders(environment) {
        let files = files(&folder)?;
        let mut named = files.iter().filter(|file| stem(file) == Some(name));
        if let Some(first) = named.next() {
            if let Some(second) = named.next() {
                bail!(
                    "{} and {} are both recipes of the same name: keep one of them",
                    first.display(),
                    second.display()
                );
            }
            return read(first);
        }
        // A file may have another name than its recipe. Invalid files are skipped.
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

/// A recipe in a list.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The recipe, or its error.
    pub(crate) recipe: anyhow::Result<Recipe>,
    pub(crate) source: Source,
}

/// Lists all recipes, each name once.
pub(crate) fn list(environment: &Environment) -> anyhow::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for folder in folders(environment) {
        for file in files(&folder)? {
            entries.push(Entry {
                name: stem(&file).unwrap_or_default().to_owned(),
                recipe: read(&file).map(|found| found.recipe),
                source: Source::File(file),
            });
        }
    }
    entries.extend(SHIPPED.map(|(name, text)| Entry {
        name: name.to_owned(),
        recipe: shipped(name, text).map(|found| found.recipe),
        source: Source::Shipped,
    }));
    let mut seen = HashSet::new();
    entries.retain(|entry| seen.insert(entry.name.clone()));
    Ok(entries)
}

fn not_found(name: &str, environment: &Environment) -> anyhow::Error {
    let entries = list(environment).unwrap_or_default();
    let known: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    anyhow!(
        "unknown recipe `{name}`{}. A recipe of your own is a file such as recipes/{name}.yaml",
        available(name, &known)
    )
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

fn folders(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let folders = [&environment.working_dir].into_iter();
    let folders = folders.chain(&environment.config_dir);
    folders.map(|folder| folder.join(FOLDER))
}

/// Returns the recipe files of a folder, sorted by name.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let failed = |error| anyhow!("{}: cannot be read: {error}", folder.display());
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let is_hidden = stem(&file).is_none_or(|stem| stem.starts_with('.'));
        if has_ending(&file) && !is_hidden && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> anyhow::Result<Found> {
    let text = config::text_of(file)?;
    parsed(file, text, Source::File(file.to_owned()))
}

fn shipped(name: &str, text: &str) -> anyhow::Result<Found> {
    let file = PathBuf::from(format!("{name}.yaml"));
    parsed(&file, text.to_owned(), Source::Shipped)
}

fn parsed(file: &Path, text: String, source: Source) -> anyhow::Result<Found> {
    let mut value = config::from_text(file, &text)?;
    // The file name is the default name.
    if let (Value::Object(fields), Some(stem)) = (&mut value, stem(file))
        && !["name", "uniqueId", "unique_id", "unique-id"]
            .iter()
            .any(|key| fields.contains_key(*key))
    {
        fields.insert("name".to_owned(), stem.into());
    }
    let recipe = Recipe::from_value(&value);
    let recipe = recipe.map_err(|error| anyhow!("{}: {error}", file.display()))?;
    Ok(Found {
        recipe,
        source,
        text,
    })
}

#[cfg(test)]
#[path = "recipes_tests.rs"]
mod tests;
