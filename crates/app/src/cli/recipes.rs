//! `recipes`: which recipes can be named, and what stands in one.

use std::path::Path;

use clap::{Args, Subcommand};
use serde::Serialize;
use switchboard_orchestration::strategy::Strategy;

use super::{Code, Failure, ListOutput, output, table::table};
use crate::{
    environment::Environment,
    recipes::{self, Entry},
    terminal::{one_line, say_warning},
};

/// Shows recipes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct RecipesArgs {
    #[command(subcommand)]
    command: Option<RecipesCommand>,
    /// The form of the list
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,
}

#[derive(Debug, Subcommand)]
enum RecipesCommand {
    /// List the recipes of this folder, of the user and those that ship
    List {
        /// The form of the list
        #[arg(short, long, value_enum, default_value_t)]
        output: ListOutput,
    },
    /// Show a recipe's file; as JSON, what was read from it and the prompt that it makes
    Show {
        /// The recipe, or its file
        #[arg(value_name = "NAME|FILE")]
        recipe: String,
        /// The form in which it is shown
        #[arg(short, long, value_enum, default_value_t)]
        output: ListOutput,
    },
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    title: Option<String>,
    description: Option<String>,
    model: Option<String>,
    strategy: Option<&'static str>,
    /// The file, or `shipped`.
    source: String,
    /// What is wrong with it.
    error: Option<String>,
}

pub(super) fn run(args: &RecipesArgs, environment: &Environment) -> Result<Code, Failure> {
    match &args.command {
        Some(RecipesCommand::Show { recipe, output }) => show(recipe, *output, environment),
        Some(RecipesCommand::List { output }) => list(*output, environment),
        None => list(args.output, environment),
    }
}

fn list(form: ListOutput, environment: &Environment) -> Result<Code, Failure> {
    let entries = recipes::list(environment).map_err(Failure::usage)?;
    let rows: Vec<Row> = entries.into_iter().map(row).collect();
    match form {
        ListOutput::Json => output::pretty(&rows),
        ListOutput::Text => {
            for error in rows.iter().filter_map(|row| row.error.as_deref()) {
                say_warning(error);
            }
            let cells: Vec<[String; 3]> = rows
                .iter()
                .filter(|row| row.error.is_none())
                .map(|row| {
                    let about = row.description.as_deref().or(row.title.as_deref());
                    [
                        row.name.clone(),
                        one_line(&near(&row.source, environment), 60),
                        one_line(about.unwrap_or_default(), 120),
                    ]
                })
                .collect();
            output::lines(&table(&cells))
        }
    }
    .map_err(Failure::run)?;
    Ok(Code::Success)
}

/// A file of the working directory as a person would name it.
fn near(source: &str, environment: &Environment) -> String {
    Path::new(source)
        .strip_prefix(&environment.working_dir)
        .map_or_else(|_| source.to_owned(), |file| file.display().to_string())
}

fn row(entry: Entry) -> Row {
    let source = entry.source.to_string();
    match entry.recipe {
        Ok(recipe) => Row {
            name: entry.name,
            strategy: recipe.strategy.as_ref().map(Strategy::name),
            title: recipe.title,
            description: recipe.description,
            model: recipe.model,
            source,
            error: None,
        },
        Err(error) => Row {
            name: entry.name,
            strategy: None,
            title: None,
            description: None,
            model: None,
            source,
            error: Some(error.to_string()),
        },
    }
}

fn show(name: &str, form: ListOutput, environment: &Environment) -> Result<Code, Failure> {
    let found = recipes::find(name, environment).map_err(Failure::usage)?;
    for key in &found.recipe.ignored {
        say_warning(&format!("`{key}` of the recipe means nothing here"));
    }
    match form {
        ListOutput::Json => output::pretty(&serde_json::json!({
            "source": found.source.to_string(),
            "recipe": found.recipe,
            "prompt": found.recipe.instructions(),
        })),
        ListOutput::Text => output::foreign(&found.text),
    }
    .map_err(Failure::run)?;
    Ok(Code::Success)
}
