//! `resources`: resources of MCP servers.

use std::io::{IsTerminal as _, Write as _};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use switchboard_domain::nearest::{did_you_mean, nearest};
use switchboard_mcp_client::{CompletionOf, FeatureError, McpHost, ResourceBody, ResourceContent};

use super::{
    offers::{self, gather, known_values, with_server},
    template::filled_in,
};
use crate::{
    config::environment::Environment,
    terminal::{self, Screen, one_line},
};
use crate::{
    run_session::{
        arguments::Global,
        context::{self, Context},
        failure::{Code, Failure},
        interrupts::Interrupts,
    },
    terminal::output::{self, ListOutput},
};

/// Arguments of `resources`.
#[derive(Debug, Args)]
pub(crate) struct ResourcesArgs {
    #[command(subcommand)]
    command: ResourcesCommand,
    /// Output format; json has complete resources, with binary data in base64
    #[arg(short, long, global = true, value_enum, default_value_t)]
    output: ListOutput,
    #[command(flatten)]
    global: Global,
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

pub(crate) async fn run(
    args: ResourcesArgs,
    environment: Environment,
    interrupts: &Interrupts,
) -> Result<Code, Failure> {
    let servers = Context::load(&args.global, environment)?.servers()?;
    let named = match &args.command {
        ResourcesCommand::List { server } | ResourcesCommand::Templates { server } => {
            server.as_deref()
        }
        ResourcesCommand::Read { server, .. } => Some(server.as_str()),
    };
    let output = args.output;
    let work = async |host: &McpHost| match &args.command {
        ResourcesCommand::List { .. } => list(host, named, output).await,
        ResourcesCommand::Templates { .. } => templates(host, named, output).await,
        ResourcesCommand::Read { server, uri } => read(host, server, uri, output).await,
    };
    with_server(servers, named, interrupts, work).await
}

async fn list(host: &McpHost, named: Option<&str>, form: ListOutput) -> Result<Code, Failure> {
    let list = async |server: String| host.resources(&server).await;
    let all = gather(host, named, list).await?;
    let none = "no resources are listed; `switchboard resources templates` has patterns";
    offers::print(&all, form, none, |offered| {
        let resource = &offered.item;
        let name = resource.title.as_ref().unwrap_or(&resource.name);
        [
            one_line(&offered.server, 40),
            one_line(&resource.uri, 200),
            one_line(resource.media_type.as_deref().unwrap_or("-"), 40),
            described(name, resource.description.as_deref()),
        ]
    })
}

async fn templates(host: &McpHost, named: Option<&str>, form: ListOutput) -> Result<Code, Failure> {
    let list = async |server: String| host.resource_templates(&server).await;
    let all = gather(host, named, list).await?;
    let none = "no patterns are listed; `switchboard resources list` has resources";
    offers::print(&all, form, none, |offered| {
        let template = &offered.item;
        let name = template.title.as_ref().unwrap_or(&template.name);
        [
            one_line(&offered.server, 40),
            one_line(&template.uri_template, 200),
            one_line(template.media_type.as_deref().unwrap_or("-"), 40),
            described(name, template.description.as_deref()),
        ]
    })
}

fn described(name: &str, description: Option<&str>) -> String {
    match description {
        Some(description) => format!("{}: {}", one_line(name, 40), one_line(description, 80)),
        None => one_line(name, 40),
    }
}

async fn read(host: &McpHost, server: &str, uri: &str, form: ListOutput) -> Result<Code, Failure> {
    let screen = Screen::new(true);
    screen.show_progress(&format!("reading {}", one_line(uri, 60)));
    let ready = context::ready(host, server).await;
    let contents = match ready {
        Ok(()) => match host.read_resource(server, uri).await {
            Ok(contents) => Ok(contents),
            Err(error) => Err(not_read(host, server, uri, error).await),
        },
        Err(failure) => Err(failure),
    };
    screen.pause();
    let contents = contents?;
    for problem in &contents.problems {
        terminal::print_warning(problem);
    }
    match form {
        ListOutput::Json => output::pretty(&contents.items),
        ListOutput::Text => contents.items.iter().try_for_each(write),
    }?;
    Ok(Code::Success)
}

fn write(content: &ResourceContent) -> std::io::Result<()> {
    if let ResourceBody::Text(text) = &content.body {
        return output::foreign(text);
    }
    let kind = content
        .media_type
        .as_deref()
        .unwrap_or("unknown media type");
    let kind = one_line(kind, 60);
    match content.bytes() {
        None => terminal::print_warning(&format!(
            "{} is not valid base64 ({kind}); `--output json` shows the original",
            one_line(&content.uri, 200)
        )),
        Some(bytes) if std::io::stdout().is_terminal() => terminal::print_note(&format!(
            "{} is {} bytes of {kind}: send the output to a file, or use `--output json`",
            one_line(&content.uri, 200),
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

/// Returns the error for an unreadable resource, with suggestions.
async fn not_read(host: &McpHost, server: &str, uri: &str, error: FeatureError) -> Failure {
    if !matches!(error, FeatureError::Refused { .. }) {
        return Failure::run(error);
    }
    let (listed, templates) =
        futures_util::future::join(host.resources(server), host.resource_templates(server)).await;
    let listed = listed.map(|listed| listed.items).unwrap_or_default();
    if listed.iter().any(|resource| resource.uri == uri) {
        // The URI is right, and the server cannot read it.
        return Failure::run(error);
    }
    let mut known = String::new();
    for template in templates.map(|listed| listed.items).unwrap_or_default() {
        let uri_template = template.uri_template;
        let filled = filled_in(&uri_template, uri).unwrap_or_default();
        for (variable, _) in &filled {
            let of = CompletionOf::ResourceTemplate {
                uri_template: uri_template.clone(),
            };
            if let Some(values) = known_values(host, server, of, variable, &filled).await {
                known.push_str(&values);
            }
        }
    }
    let meant = nearest(uri, listed.iter().map(|resource| resource.uri.as_str()));
    Failure::run(anyhow!(
        "{error}{}{known}\n`switchboard resources list {server}` and `switchboard resources \
         templates \
         {server}` show what there is",
        did_you_mean(meant)
    ))
}
