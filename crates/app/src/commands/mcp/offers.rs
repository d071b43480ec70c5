//! Resources and prompts: starts servers, collects lists, suggests values.

use std::collections::BTreeMap;

use serde::Serialize;
use switchboard_mcp_client::{CompletionOf, CompletionRequest, FeatureError, Listing, McpHost};

use crate::{
    run_session::{
        context,
        failure::{Code, Failure},
        interrupts::Interrupts,
        servers::Servers,
    },
    terminal::{
        self, Screen, one_line,
        output::{self, ListOutput},
        table::table,
    },
};

/// Maximum number of suggested values in a message.
const MAX_VALUES: usize = 20;

/// An item of a server.
#[derive(Debug, Serialize)]
pub(crate) struct Offered<T> {
    /// The configured name of the server.
    pub(crate) server: String,
    #[serde(flatten)]
    pub(crate) item: T,
}

/// Runs `work` with the named server, or with all servers.
pub(crate) async fn with_server(
    mut servers: Servers,
    named: Option<&str>,
    interrupts: &Interrupts,
    work: impl AsyncFnOnce(&McpHost) -> Result<Code, Failure>,
) -> Result<Code, Failure> {
    if let Some(name) = named {
        context::only(&mut servers, name)?;
    }
    context::with_host(servers, interrupts, work).await
}

/// Prints items as JSON, as a table, or a note if there are none.
pub(crate) fn print<T: Serialize, const N: usize>(
    items: &[Offered<T>],
    form: ListOutput,
    none: &str,
    row: impl Fn(&Offered<T>) -> [String; N],
) -> Result<Code, Failure> {
    match form {
        ListOutput::Json => output::pretty(&items),
        ListOutput::Text if items.is_empty() => {
            terminal::print_note(none);
            Ok(())
        }
        ListOutput::Text => output::lines(&table(&items.iter().map(row).collect::<Vec<_>>())),
    }?;
    Ok(Code::Success)
}

/// Collects the items of the named server, or of all servers. A server without support for the kind
/// is skipped, and a failing one causes a warning, unless it is named.
pub(crate) async fn gather<T, F>(
    host: &McpHost,
    named: Option<&str>,
    list: impl Fn(String) -> F,
) -> Result<Vec<Offered<T>>, Failure>
where
    F: Future<Output = Result<Listing<T>, FeatureError>>,
{
    let screen = Screen::new(true);
    screen.show_progress(&match named {
        Some(name) => format!("starting {name}"),
        None => "starting MCP servers".to_owned(),
    });
    let ready = if let Some(name) = named {
        context::ready(host, name).await
    } else {
        host.settled().await;
        Ok(())
    };
    let servers: Vec<String> = host.servers().into_iter().map(|s| s.name).collect();
    let listed = match ready {
        Ok(()) => {
            let lists = servers.into_iter().map(|server| {
                let listing = list(server.clone());
                async move { (server, listing.await) }
            });
            Ok(futures_util::future::join_all(lists).await)
        }
        Err(failure) => Err(failure),
    };
    screen.pause();
    let mut all = Vec::new();
    for (server, listing) in listed? {
        match listing {
            Ok(listing) => {
                for problem in &listing.problems {
                    terminal::print_warning(&format!("{server}: {problem}"));
                }
                let items = listing.items.into_iter();
                all.extend(items.map(|item| Offered {
                    server: server.clone(),
                    item,
                }));
            }
            Err(error) if named.is_some() => return Err(Failure::run(error)),
            Err(FeatureError::Unsupported { .. }) => {}
            Err(error) => terminal::print_warning(&error.to_string()),
        }
    }
    Ok(all)
}

/// Returns the last line of a message: the known values of an argument. `None` if the server does
/// not list values or `given` is one of them.
pub(crate) async fn known_values(
    host: &McpHost,
    server: &str,
    of: CompletionOf,
    argument: &str,
    given: &[(String, String)],
) -> Option<String> {
    let others = given.iter().filter(|(name, _)| name != argument);
    let wanted = CompletionRequest {
        of,
        argument: argument.to_owned(),
        value: String::new(),
        known: others.cloned().collect::<BTreeMap<_, _>>(),
    };
    // A server without completions causes no other error.
    let known = host.complete(server, wanted).await.ok()?;
    let mut own = given.iter().filter(|(name, _)| name == argument);
    if own.any(|(_, value)| known.values.contains(value)) {
        return None;
    }
    let all = known.values.len();
    let mut shown: Vec<String> = known
        .values
        .iter()
        .take(MAX_VALUES)
        .map(|value| one_line(value, 80))
        .collect();
    if shown.is_empty() {
        return None;
    }
    if known.has_more || all > MAX_VALUES {
        shown.push(match known.total {
            Some(total) => format!("… ({total} in all)"),
            None => "…".to_owned(),
        });
    }
    let argument = one_line(argument, 64);
    Some(format!(
        "\nknown values of `{argument}`: {}",
        shown.join(", ")
    ))
}
