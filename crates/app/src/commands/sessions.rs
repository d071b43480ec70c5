//! Command `sessions`: lists, shows, exports, imports and deletes saved conversations.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_domain::{Principal, RunStore as _, SessionStore as _};
use switchboard_sessions::ImportIdPolicy;

use super::print_table;
use crate::{
    chat::transcript,
    config::environment::Environment,
    run_session::{
        arguments::GlobalArgs,
        context::Context,
        failure::{Code, Failure},
    },
    storage::sessions::{OpenSessionStore, session_retention},
    terminal::{
        output::{self, ListFormat},
        print_note, to_one_line,
    },
};

/// Command-line arguments of `switchboard sessions`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    command: Option<SessionsCommand>,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Maximum number of conversations
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    limit: u32,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ListFormat,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List conversations, newest first
    List(ListArgs),
    /// Show a conversation as Markdown or JSON
    Show {
        /// Id of the conversation, or its first characters
        id: String,
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: ListFormat,
    },
    /// Write one or all conversations to standard output
    Export {
        /// Id of the conversation, or its first characters
        id: Option<String>,
    },
    /// Import exported sessions
    Import {
        /// File to import; - reads standard input
        file: PathBuf,
        /// Give the conversations new ids; without this option an existing id is an error
        #[arg(long)]
        new_ids: bool,
    },
    /// Delete a conversation and its runs
    Delete {
        /// Id of the conversation, or its first characters
        id: String,
    },
    /// Delete sessions beyond the configured retention
    Prune,
}

pub(crate) async fn execute(args: SessionsArgs, environment: Environment) -> Result<Code, Failure> {
    let command = args.command.unwrap_or(SessionsCommand::List(args.list));
    let context = Context::load_context(&args.global, environment)?;
    // The store is opened without pruning, because a command that reads must not delete sessions.
    let sessions = OpenSessionStore::open_without_pruning(&context.config, &context.environment)
        .await
        .map_err(Failure::usage_error)?;
    let result = run_sessions_command(command, &sessions, &context).await;
    sessions.close_store().await;
    result
}

async fn run_sessions_command(
    command: SessionsCommand,
    sessions: &OpenSessionStore,
    context: &Context,
) -> Result<Code, Failure> {
    let owner = &Principal::default();
    let store = &sessions.store;
    let find = async |id: &str| {
        let found = sessions.find_session(owner, id).await;
        found.map_err(Failure::usage_error)
    };
    match command {
        SessionsCommand::List(args) => {
            let all = store.list_sessions(owner, args.limit).await?;
            let none = format!("no saved sessions in {}", sessions.place);
            return print_table(args.output, &all, &none, |session| {
                [
                    to_one_line(&session.id.0, 60),
                    session.created_at.chars().take(16).collect(),
                    format!("{} messages", session.messages),
                    to_one_line(&session.title, 60),
                ]
            });
        }
        SessionsCommand::Show { id, output } => {
            let session = find(&id).await?;
            let messages = store.load_messages(owner, &session.id, 0).await?;
            match output {
                ListFormat::Text => {
                    output::print_server_text(&transcript::format_as_markdown(
                        &session, &messages,
                    ))?;
                }
                ListFormat::Json => {
                    let runs = store.list_runs(owner, Some(&session.id), u32::MAX).await?;
                    let all = json!({"session": session, "messages": messages, "runs": runs});
                    output::write_pretty_json(&all)?;
                }
            }
        }
        SessionsCommand::Export { id } => {
            let id = match id {
                Some(id) => Some(find(&id).await?.id),
                None => None,
            };
            let mut pieces = store.export(owner, id.as_ref());
            let mut out = io::stdout();
            while let Some(piece) = pieces.next().await {
                out.write_all(piece?.as_bytes())?;
            }
            out.flush()?;
        }
        SessionsCommand::Import { file, new_ids } => {
            let path = context.environment.working_dir.join(&file);
            import_sessions(sessions, owner, &file, &path, new_ids).await?;
        }
        SessionsCommand::Delete { id } => {
            let session = find(&id).await?;
            store.delete_session(owner, &session.id).await?;
            print_note(&format!("deleted {}", session.id));
        }
        SessionsCommand::Prune => {
            let retention = session_retention(&context.config.sessions).ok_or_else(|| {
                Failure::usage_error(anyhow!(
                    "the configuration keeps all sessions: set `sessions: {{keep_days: 90}}` or \
                     `keep_sessions` in switchboard.yaml"
                ))
            })?;
            let pruned = store.prune_sessions(&retention).await?;
            print_note(&format!("deleted {pruned} sessions"));
        }
    }
    Ok(Code::Success)
}

async fn import_sessions(
    sessions: &OpenSessionStore,
    owner: &Principal,
    file: &Path,
    path: &Path,
    new_ids: bool,
) -> Result<(), Failure> {
    let store = &sessions.store;
    let ids = if new_ids {
        ImportIdPolicy::New
    } else {
        ImportIdPolicy::Keep
    };
    let imported = if file.as_os_str() == "-" {
        store.import(owner, tokio::io::stdin(), ids).await
    } else {
        let opened = tokio::fs::File::open(path).await;
        let opened = opened.with_context(|| format!("cannot read {}", file.display()));
        let opened = opened.map_err(Failure::usage_error)?;
        let opened = tokio::io::BufReader::new(opened);
        store.import(owner, opened, ids).await
    };
    let imported = imported
        .with_context(|| format!("nothing was imported from {}", file.display()))
        .map_err(Failure::usage_error)?;
    for id in &imported.sessions {
        output::print_lines(&id.0)?;
    }
    print_note(&format!("imported {} sessions", imported.sessions.len()));
    if !imported.cancelled.is_empty() {
        print_note(&format!(
            "unfinished runs were cancelled: {}",
            imported.cancelled.join(", ")
        ));
    }
    Ok(())
}
