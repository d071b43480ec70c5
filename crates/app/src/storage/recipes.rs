//! Finds and reads recipes.
//!
//! A recipe is a file (YAML, JSON or TOML) in `recipes/` of the working directory or of the user's
//! configuration folder, or a recipe that ships with the program. If several have the same name,
//! the first in this order is used. Prompts may contain `${…}`, so variables are not expanded.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{anyhow, bail};
use serde_json::Value;
use switchboard_domain::similar_names::list_available_names;
use switchboard_orchestration::recipe::{Recipe, SHIPPED};

use crate::config::{self, environment::Environment};

/// Name of the folders in which recipe files are searched for.
pub(crate) const FOLDER: &str = "recipes";
/// File extensions of recipes. An argument with such an extension is a file, not a name.
const ENDINGS: [&str; 4] = ["yaml", "yml", "json", "toml"];

/// A recipe with the text of its file and the place where it was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundRecipe {
    pub(crate) recipe: Recipe,
    pub(crate) source: RecipeSource,
    /// Text of the recipe file as `switchboard recipes show` prints it.
    pub(crate) text: String,
}

/// Place where a recipe was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecipeSource {
    File(PathBuf),
    Shipped,
}

impl fmt::Display for RecipeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(f),
            Self::Shipped => f.write_str("shipped"),
        }
    }
}

/// Finds a recipe by name, or reads a recipe file. A value with a slash or a file extension is a
/// file, relative to the working directory.
pub(crate) fn find_recipe(
    name_or_file: &str,
    environment: &Environment,
) -> anyhow::Result<FoundRecipe> {
    let has_extension = has_recipe_extension(Path::new(name_or_file));
    if has_extension || name_or_file.contains(['/', '\\']) {
        return read_recipe(&environment.working_dir.join(name_or_file));
    }
    find_recipe_by_name(name_or_file, environment)
}

/// Finds a recipe by its name. Reads only files in recipe folders, so that a remote client may
/// choose the name.
pub(crate) fn find_recipe_by_name(
    name: &str,
    environment: &Environment,
) -> anyhow::Result<FoundRecipe> {
    let mut entries = list_recipes(environment)?;
    let has_file_name = |entry: &RecipeEntry| entry.name == name;
    // The `name` in a recipe file may differ from the file name. An invalid file is found only by
    // its file name.
    let has_own_name = |entry: &RecipeEntry| {
        let found = entry.recipe.as_ref();
        found.is_ok_and(|found| found.recipe.name == name)
    };
    let position = entries.iter().position(has_file_name);
    if let Some(at) = position.or_else(|| entries.iter().position(has_own_name)) {
        return entries.swap_remove(at).recipe;
    }
    let known: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    bail!(
        "unknown recipe `{name}`{}. Add your own as a file such as recipes/{name}.yaml",
        list_available_names(name, &known)
    )
}

/// A recipe or an invalid recipe file in the list of recipes.
#[derive(Debug)]
pub(crate) struct RecipeEntry {
    pub(crate) name: String,
    /// The parsed recipe, or the error in its file, which the list shows.
    pub(crate) recipe: anyhow::Result<FoundRecipe>,
    pub(crate) source: RecipeSource,
}

/// Lists all recipes. If several have the same name, only the recipe that this name selects is
/// listed.
pub(crate) fn list_recipes(environment: &Environment) -> anyhow::Result<Vec<RecipeEntry>> {
    let mut entries: Vec<RecipeEntry> = Vec::new();
    for folder in recipe_folders(environment) {
        for file in list_recipe_files(&folder)? {
            entries.push(RecipeEntry {
                name: file_stem(&file).unwrap_or_default().to_owned(),
                recipe: read_recipe(&file),
                source: RecipeSource::File(file),
            });
        }
    }
    entries.extend(SHIPPED.map(|(name, text)| RecipeEntry {
        name: name.to_owned(),
        recipe: parse_shipped_recipe(name, text),
        source: RecipeSource::Shipped,
    }));
    let mut seen = HashSet::new();
    entries.retain(|entry| seen.insert(entry.name.clone()));
    Ok(entries)
}

fn has_recipe_extension(file: &Path) -> bool {
    file.extension().is_some_and(|ending| {
        ENDINGS
            .iter()
            .any(|known| ending.eq_ignore_ascii_case(known))
    })
}

fn file_stem(file: &Path) -> Option<&str> {
    file.file_stem()?.to_str()
}

fn recipe_folders(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let folders = [&environment.working_dir].into_iter();
    let folders = folders.chain(&environment.config_dir);
    folders.map(|folder| folder.join(FOLDER))
}

/// Returns the paths of the recipe files in a folder, sorted by file name.
fn list_recipe_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let failed = |error| anyhow!("{}: {error}", folder.display());
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let is_hidden = file_stem(&file).is_none_or(|stem| stem.starts_with('.'));
        if has_recipe_extension(&file) && !is_hidden && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read_recipe(file: &Path) -> anyhow::Result<FoundRecipe> {
    let text = config::read_text_file(file)?;
    parse_recipe(file, text, RecipeSource::File(file.to_owned()))
}

fn parse_shipped_recipe(name: &str, text: &str) -> anyhow::Result<FoundRecipe> {
    let file = PathBuf::from(format!("{name}.yaml"));
    parse_recipe(&file, text.to_owned(), RecipeSource::Shipped)
}

fn parse_recipe(file: &Path, text: String, source: RecipeSource) -> anyhow::Result<FoundRecipe> {
    let mut value = config::parse_document(file, &text)?;
    // A recipe without the field `name` gets the name of its file.
    if let (Value::Object(fields), Some(stem)) = (&mut value, file_stem(file))
        && !["name", "uniqueId", "unique_id", "unique-id"]
            .iter()
            .any(|key| fields.contains_key(*key))
    {
        fields.insert("name".to_owned(), stem.into());
    }
    let recipe = Recipe::from_value(&value);
    let recipe = recipe.map_err(|error| anyhow!("{}: {error}", file.display()))?;
    Ok(FoundRecipe {
        recipe,
        source,
        text,
    })
}

#[cfg(test)]
#[path = "recipes_tests.rs"]
mod tests;
