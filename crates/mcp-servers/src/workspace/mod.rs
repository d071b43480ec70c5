//! `workspace`: the files, data and commands of one folder, for models that work on code or data.
//!
//! - [`root`] opens all files relative to the root folder and follows no links. Hidden files are
//!   not written, and secret files are not read.
//! - [`data`] creates a database in memory for each query of data files.
//! - [`command`] runs commands of a configured list. They run code of the workspace, which this
//!   server does not confine.

mod command;
mod data;
mod files;
mod root;
mod text;

use std::{io::ErrorKind, sync::Arc};

use self::{
    command::{Command, Environment, tools::command_tools},
    data::{list::data_list_tool, query::data_query_tool, read_table::data_read_tool},
    files::{
        list::file_list_tool, load::file_load_tool, logs::debug_logs_tool, save::file_save_tool,
    },
    root::{Root, path::NameRules},
};
use crate::{
    error::ServerError,
    options::{ServerOptions, WorkspaceOptions},
    tool::{BundledServer, server::ToolServer},
};

pub(crate) const IDENTITY: BundledServer = BundledServer {
    name: "workspace",
    title: "Workspace",
    description: "Files and data of one folder, and the commands that compile and test it",
};

pub(crate) async fn open_server(options: &ServerOptions) -> Result<ToolServer, ServerError> {
    if options.data.is_some() {
        return Err(setting_error("it does not use a database; remove --data"));
    }
    let Some(options) = &options.workspace else {
        return Err(setting_error(
            "a root folder is required; set it with --root FOLDER",
        ));
    };
    let options = options.clone();
    let opened = tokio::task::spawn_blocking(move || build_server(&options)).await;
    opened.unwrap_or_else(|error| Err(setting_error(error.to_string())))
}

fn setting_error(problem: impl Into<String>) -> ServerError {
    ServerError::Setting {
        server: IDENTITY.name,
        problem: problem.into(),
    }
}

fn build_server(options: &WorkspaceOptions) -> Result<ToolServer, ServerError> {
    let rules = NameRules::new(&options.allowed_names);
    let shown = options.root.display();
    let root = Root::open(&options.root, rules, options.max_file_bytes).map_err(|error| {
        let problem = match error.kind() {
            ErrorKind::NotFound => "it does not exist".to_owned(),
            ErrorKind::NotADirectory => "it is not a folder".to_owned(),
            _ => error.to_string(),
        };
        setting_error(format!("`{shown}` cannot be the root folder: {problem}"))
    })?;
    let environment =
        Environment::new(std::env::vars_os(), &options.environment).map_err(setting_error)?;
    let mut commands: Vec<Command> = Vec::new();
    for entry in &options.commands {
        let directory = root.working_directory().unwrap_or(&options.root);
        let command = Command::parse(entry, directory, &environment).map_err(setting_error)?;
        let same = |it: &&Command| it.name == command.name && it.purpose == command.purpose;
        if commands.iter().find(same).is_some() {
            let problem = format!("command `{}` is specified twice", command.name);
            return Err(setting_error(problem));
        }
        commands.push(command);
    }
    if options.read_only && !commands.is_empty() {
        return Err(setting_error(
            "--read-only cannot be combined with allowed commands",
        ));
    }
    let root = Arc::new(root);
    let mut tools = vec![file_load_tool(&root), file_list_tool(&root)];
    if !options.read_only {
        tools.push(file_save_tool(&root));
    }
    tools.extend([
        data_list_tool(&root),
        data_read_tool(&root),
        data_query_tool(&root, options.query_timeout),
        debug_logs_tool(&root),
    ]);
    let timeout = options.command_timeout;
    tools.extend(command_tools(&root, environment, timeout, &commands));
    let instructions = build_instructions(options, &commands);
    Ok(ToolServer::new(IDENTITY, instructions, tools))
}

fn build_instructions(options: &WorkspaceOptions, commands: &[Command]) -> String {
    let mut text = "The files of one folder. Paths begin at this root folder, with / between the \
        names: src/main.rs. Other folders are not accessible, links are not followed, and files \
        with secrets such as .env are off limits. Load a file before you describe or change it. \
        For questions about data files, use data_query and do not read them."
        .to_owned();
    if options.read_only {
        text.push_str(" The folder is read-only.");
    } else {
        text.push_str(
            " For a small change, save one passage (old_text and new_text), not the whole file.",
        );
    }
    if !commands.is_empty() {
        text.push_str(" After a change, compile the code or run its tests.");
    }
    text
}
