//! Command `resources`: lists and reads resources of MCP servers.

use std::io::{IsTerminal as _, Write as _};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use switchboard_domain::{
    ToolCallError,
    similar_names::{did_you_mean, find_nearest},
};
use switchboard_mcp_client::{FeatureError, McpHost, ResourceBody, ResourceContent};

use super::{feature_lists::print_server_features, run_with_servers};
use crate::{
    run_session::{
        arguments::GlobalArgs,
        context::{Context, Process},
        failure::{Code, Failure},
    },
    terminal::{
        output::{self, ListFormat},
        print_note, print_warning, to_one_line,
    },
};

/// Command-line arguments of `switchboard resources`.
#[derive(Debug, Args)]
pub(crate) struct ResourcesArgs {
    #[command(subcommand)]
    command: ResourcesCommand,
    /// Output format; json has complete resources, with binary data in base64
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: ListFormat,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum ResourcesCommand {
    /// List the resources of a server, or of all servers
    List {
        /// Name of the server
        server: Option<String>,
    },
    /// List the URI templates of a server, or of all servers
    Templates {
        /// Name of the server
        server: Option<String>,
    },
    /// Read a resource; binary data is written unchanged to a file or another program
    Read {
        /// Name of the server
        server: String,
        /// URI of the resource
        uri: String,
    },
}

pub(crate) async fn execute(args: ResourcesArgs, process: Process<'_>) -> Result<Code, Failure> {
    let servers = Context::load_context(&args.global, process.environment)?.servers_to_start()?;
    let named = match &args.command {
        ResourcesCommand::List { server } | ResourcesCommand::Templates { server } => {
            server.as_deref()
        }
        ResourcesCommand::Read { server, .. } => Some(server.as_str()),
    };
    let form = args.output;
    let work = async |host: &McpHost| match &args.command {
        ResourcesCommand::List { .. } => list_resources(host, named.is_some(), form).await,
        ResourcesCommand::Templates { .. } => list_templates(host, named.is_some(), form).await,
        ResourcesCommand::Read { server, uri } => read_resource(host, server, uri, form).await,
    };
    run_with_servers(servers, named, process.interrupts, work).await
}

async fn list_resources(host: &McpHost, is_named: bool, form: ListFormat) -> Result<Code, Failure> {
    let read = async |server: &str| host.list_resources(server).await;
    let none = "no resources. Try `switchboard resources templates`";
    print_server_features(host, is_named, form, none, read, |server, it| {
        let name = it.title.as_ref().unwrap_or(&it.name);
        let (media_type, about) = (it.media_type.as_deref(), it.description.as_deref());
        format_resource_row(server, &it.uri, media_type, name, about)
    })
    .await
}

async fn list_templates(host: &McpHost, is_named: bool, form: ListFormat) -> Result<Code, Failure> {
    let read = async |server: &str| host.list_resource_templates(server).await;
    let none = "no templates. Try `switchboard resources list`";
    print_server_features(host, is_named, form, none, read, |server, it| {
        let name = it.title.as_ref().unwrap_or(&it.name);
        let (media_type, about) = (it.media_type.as_deref(), it.description.as_deref());
        format_resource_row(server, &it.uri_template, media_type, name, about)
    })
    .await
}

fn format_resource_row(
    server: String,
    uri: &str,
    media_type: Option<&str>,
    name: &str,
    description: Option<&str>,
) -> [String; 4] {
    let mut about = to_one_line(name, 40);
    if let Some(description) = description {
        about = format!("{about}: {}", to_one_line(description, 80));
    }
    let media_type = to_one_line(media_type.unwrap_or("-"), 40);
    [server, to_one_line(uri, 200), media_type, about]
}

async fn read_resource(
    host: &McpHost,
    server: &str,
    uri: &str,
    form: ListFormat,
) -> Result<Code, Failure> {
    let contents = match host.read_resource(server, uri).await {
        Ok(contents) => contents,
        Err(error @ FeatureError::Request(ToolCallError::Refused { .. })) => {
            return Err(refused_uri_failure(host, server, uri, error).await);
        }
        Err(error) => return Err(Failure::runtime_error(error)),
    };
    for problem in &contents.problems {
        print_warning(problem);
    }
    match form {
        ListFormat::Json => output::write_pretty_json(&contents.items),
        ListFormat::Text => contents.items.iter().try_for_each(print_resource_content),
    }?;
    Ok(Code::Success)
}

fn print_resource_content(content: &ResourceContent) -> std::io::Result<()> {
    if let ResourceBody::Text(text) = &content.body {
        return output::print_server_text(text);
    }
    let kind = content.media_type.as_deref();
    let kind = to_one_line(kind.unwrap_or("unknown media type"), 60);
    match content.to_bytes() {
        None => print_warning(&format!(
            "{} is not valid base64 ({kind}); `--output json` shows the original",
            to_one_line(&content.uri, 200)
        )),
        Some(bytes) if std::io::stdout().is_terminal() => print_note(&format!(
            "{} is {} bytes of {kind}: send the output to a file, or use `--output json`",
            to_one_line(&content.uri, 200),
            bytes.len()
        )),
        Some(bytes) => {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Returns the error for a URI that the server did not accept. The message suggests the most
/// similar URI in the server's list.
async fn refused_uri_failure(
    host: &McpHost,
    server: &str,
    uri: &str,
    error: FeatureError,
) -> Failure {
    let listed = host.list_resources(server).await;
    let listed = listed.map(|listed| listed.items).unwrap_or_default();
    if listed.iter().any(|resource| resource.uri == uri) {
        // The URI is in the server's list, so it is not misspelled and no other URI is suggested.
        return Failure::runtime_error(error);
    }
    let similar = find_nearest(uri, listed.iter().map(|resource| resource.uri.as_str()));
    Failure::runtime_error(anyhow!(
        "{error}{}\n`switchboard resources list {server}` and `switchboard resources templates \
         {server}` list the valid URIs",
        did_you_mean(similar)
    ))
}
