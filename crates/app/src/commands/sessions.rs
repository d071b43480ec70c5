//! `sessions`: saved conversations.

use std::{
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_domain::{Principal, RunStore as _, SessionStore as _};
use switchboard_sessions::ImportIds;

use crate::{
    chat::transcript,
    config::environment::Environment,
    storage::sessions::{Sessions, retention},
    terminal::{one_line, print_note},
};
use crate::{
    run_session::{
        arguments::Global,
        context::Context,
        failure::{Code, Failure},
    },
    terminal::{
        output::{self, ListOutput},
        table::table,
    },
};

/// Arguments of `sessions`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    command: Option<SessionsCommand>,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    global: Global,
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
    output: ListOutput,
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
        output: ListOutput,
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

pub(crate) async fn run(args: SessionsArgs, environment: Environment) -> Result<Code, Failure> {
    let command = args.command.unwrap_or(SessionsCommand::List(args.list));
    let context = Context::load(&args.global, environment)?;
    // Reading and exporting deletes nothing.
    let sessions = Sessions::open_unpruned(&context.config, &context.environment)
        .await
        .map_err(Failure::usage)?;
    let result = carry_out(command, &sessions, &context).await;
    sessions.close().await;
    result.map(|()| Code::Success)
}

async fn carry_out(
    command: SessionsCommand,
    sessions: &Sessions,
    context: &Context,
) -> Result<(), Failure> {
    let owner = Principal::default();
    match command {
        SessionsCommand::List(args) => list(sessions, &owner, &args).await,
        SessionsCommand::Show { id, output } => show(sessions, &owner, &id, output).await,
        SessionsCommand::Export { id } => export(sessions, &owner, id.as_deref()).await,
        SessionsCommand::Import { file, new_ids } => {
            let ids = if new_ids {
                ImportIds::New
            } else {
                ImportIds::Keep
            };
            import(sessions, &owner, file, ids, context).await
        }
        SessionsCommand::Delete { id } => {
            let session = sessions.find(&owner, &id).await.map_err(Failure::usage)?;
            let store = sessions.store();
            store.delete(&owner, &session.id).await?;
            print_note(&format!("forgot {}", session.id));
            Ok(())
        }
        SessionsCommand::Prune => {
            let Some(retention) = retention(&context.config.sessions) else {
                return Err(Failure::usage(anyhow!(
                    "the configuration keeps every session: say `sessions: {{keep_days: 90}}` or \
                     `keep_sessions` in switchboard.yaml"
                )));
            };
            let pruned = sessions.store().prune(&retention).await;
            let pruned = pruned?;
            print_note(&format!("forgot {} sessions", pruned.sessions));
            Ok(())
        }
    }
}

async fn list(sessions: &Sessions, owner: &Principal, args: &ListArgs) -> Result<(), Failure> {
    let all = sessions.store().list(owner, args.limit).await;
    let all = all?;
    match args.output {
        ListOutput::Json => output::pretty(&all),
        ListOutput::Text if all.is_empty() => {
            print_note(&format!("no session is kept in {}", sessions.place()));
            Ok(())
        }
        ListOutput::Text => {
            let rows: Vec<[String; 4]> = all
                .iter()
                .map(|session| {
                    [
                        one_line(&session.id.0, 60),
                        session.created_at.chars().take(16).collect(),
                        format!("{} messages", session.messages),
                        one_line(&session.title, 60),
                    ]
                })
                .collect();
            output::lines(&table(&rows))
        }
    }
    .map_err(Failure::run)
}

async fn show(
    sessions: &Sessions,
    owner: &Principal,
    id: &str,
    form: ListOutput,
) -> Result<(), Failure> {
    let session = sessions.find(owner, id).await.map_err(Failure::usage)?;
    let store = sessions.store();
    let messages = store.messages(owner, &session.id, 0).await;
    let messages = messages?;
    match form {
        ListOutput::Text => output::foreign(&transcript::markdown(&session, &messages)),
        ListOutput::Json => {
            let runs = store.runs(owner, Some(&session.id), u32::MAX).await;
            let runs = runs?;
            output::pretty(&json!({"session": session, "messages": messages, "runs": runs}))
        }
    }
    .map_err(Failure::run)
}

async fn export(sessions: &Sessions, owner: &Principal, id: Option<&str>) -> Result<(), Failure> {
    let session = match id {
        Some(id) => Some(sessions.find(owner, id).await.map_err(Failure::usage)?),
        None => None,
    };
    let id = session.as_ref().map(|session| &session.id);
    let mut pieces = sessions.store().export(owner, id);
    let mut out = io::stdout();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        out.write_all(piece.as_bytes())?;
    }
    out.flush().map_err(Failure::run)
}

async fn import(
    sessions: &Sessions,
    owner: &Principal,
    file: PathBuf,
    ids: ImportIds,
    context: &Context,
) -> Result<(), Failure> {
    let store = sessions.store();
    let imported = if file.as_os_str() == "-" {
        store.import(owner, tokio::io::stdin(), ids).await
    } else {
        let path = context.environment.working_dir.join(&file);
        let opened = tokio::fs::File::open(&path).await;
        let opened = opened
            .with_context(|| format!("{} cannot be read", file.display()))
            .map_err(Failure::usage)?;
        store
            .import(owner, tokio::io::BufReader::new(opened), ids)
            .await
    };
    let imported = imported.map_err(|error| {
        Failure::usage(error).context(format!("nothing was taken from {}", file.display()))
    })?;
    for id in &imported.sessions {
        output::lines(&id.0)?;
    }
    print_note(&format!("took in {} sessions", imported.sessions.len()));
    if !imported.cancelled.is_empty() {
        print_note(&format!(
            "runs that were not over are cancelled: {}",
            imported.cancelled.join(", ")
        ));
    }
    Ok(())
}
