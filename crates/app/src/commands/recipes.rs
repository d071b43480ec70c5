//! Command `recipes`: lists recipes and shows one of them.

use std::path::Path;

use clap::{Args, Subcommand};
use serde::Serialize;
use switchboard_orchestration::strategy::Strategy;

use super::print_table;
use crate::{
    config::environment::Environment,
    run_session::failure::{Code, Failure},
    storage::recipes::{self, FoundRecipe, RecipeEntry},
    terminal::{
        output::{self, ListFormat},
        print_warning, to_one_line,
    },
};

/// Command-line arguments of `switchboard recipes`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RecipesArgs {
    #[command(subcommand)]
    command: Option<RecipesCommand>,
    /// Output format
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: ListFormat,
}

#[derive(Debug, Subcommand)]
enum RecipesCommand {
    /// List the recipes of this folder, your own and the shipped ones
    List,
    /// Show the file of a recipe; as JSON, the parsed recipe and its prompt
    Show {
        /// Name or file of the recipe
        #[arg(value_name = "NAME|FILE")]
        recipe: String,
    },
}

#[derive(Debug, Default, Serialize)]
struct RecipeRow {
    name: String,
    title: Option<String>,
    description: Option<String>,
    model: Option<String>,
    strategy: Option<&'static str>,
    /// Path of the recipe file, or `shipped` for a recipe that is part of the program.
    source: String,
    error: Option<String>,
}

pub(crate) fn execute(args: &RecipesArgs, environment: &Environment) -> Result<Code, Failure> {
    match &args.command {
        Some(RecipesCommand::Show { recipe }) => show_recipe(recipe, args.output, environment),
        Some(RecipesCommand::List) | None => list_recipes(args.output, environment),
    }
}

fn list_recipes(form: ListFormat, environment: &Environment) -> Result<Code, Failure> {
    let entries = recipes::list_recipes(environment).map_err(Failure::usage_error)?;
    let mut rows: Vec<RecipeRow> = entries.into_iter().map(build_recipe_row).collect();
    if form == ListFormat::Text {
        for error in rows.iter().filter_map(|row| row.error.as_deref()) {
            print_warning(error);
        }
        rows.retain(|row| row.error.is_none());
    }
    print_table(form, &rows, "", |row| {
        let about = row.description.as_deref().or(row.title.as_deref());
        [
            row.name.clone(),
            to_one_line(&shorten_path(&row.source, environment), 60),
            to_one_line(about.unwrap_or_default(), 120),
        ]
    })
}

/// Returns the relative path if `source` is the path of a file in the working directory. Returns
/// other texts unchanged.
fn shorten_path(source: &str, environment: &Environment) -> String {
    Path::new(source)
        .strip_prefix(&environment.working_dir)
        .map_or_else(|_| source.to_owned(), |file| file.display().to_string())
}

fn build_recipe_row(entry: RecipeEntry) -> RecipeRow {
    let source = entry.source.to_string();
    match entry.recipe {
        Ok(FoundRecipe { recipe, .. }) => RecipeRow {
            name: entry.name,
            strategy: recipe.strategy.as_ref().map(Strategy::name),
            title: recipe.title,
            description: recipe.description,
            model: recipe.model,
            source,
            error: None,
        },
        Err(error) => RecipeRow {
            name: entry.name,
            source,
            error: Some(error.to_string()),
            ..RecipeRow::default()
        },
    }
}

fn show_recipe(name: &str, form: ListFormat, environment: &Environment) -> Result<Code, Failure> {
    let found = recipes::find_recipe(name, environment).map_err(Failure::usage_error)?;
    for key in &found.recipe.ignored {
        print_warning(&format!("unknown key `{key}` in the recipe is ignored"));
    }
    match form {
        ListFormat::Json => output::write_pretty_json(&serde_json::json!({
            "source": found.source.to_string(),
            "recipe": found.recipe,
            "prompt": found.recipe.system_prompt(),
        })),
        ListFormat::Text => output::print_server_text(&found.text),
    }?;
    Ok(Code::Success)
}
