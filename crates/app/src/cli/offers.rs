//! What servers offer beside tools: gathering it, and saying what would have been meant.

use std::collections::BTreeMap;

use serde::Serialize;
use switchboard_mcp_client::{CompletionOf, CompletionRequest, FeatureError, Listing, McpHost};

use super::{Failure, context};
use crate::{
    servers::Servers,
    terminal::{self, Screen, one_line},
};

/// Known values that are named in a message.
const MOST_VALUES: usize = 20;

/// Something of a server.
#[derive(Debug, Serialize)]
pub(super) struct Offered<T> {
    /// The server, as the configuration names it.
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) item: T,
}

/// Starts the server that is named, or all of them.
pub(super) fn start(mut servers: Servers, named: Option<&str>) -> Result<McpHost, Failure> {
    if let Some(name) = named {
        context::only(&mut servers, name)?;
    }
    context::start(servers)
}

/// What the server that is named lists, or all of them. Of those that are not named, one that does not offer
/// anything of the kind is no error, and one that fails is a warning.
pub(super) async fn gather<T, F>(
    host: &McpHost,
    named: Option<&str>,
    list: impl Fn(String) -> F,
) -> Result<Vec<Offered<T>>, Failure>
where
    F: Future<Output = Result<Listing<T>, FeatureError>>,
{
    let screen = Screen::new(true);
    screen.wait_for(&match named {
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
    screen.hold_still();
    let mut all = Vec::new();
    for (server, listing) in listed? {
        match listing {
            Ok(listing) => {
                for problem in &listing.problems {
                    terminal::say_warning(&format!("{server}: {problem}"));
                }
                let items = listing.items.into_iter();
                all.extend(items.map(|item| Offered {
                    server: server.clone(),
                    item,
                }));
            }
            Err(error) if named.is_some() => return Err(Failure::run(error)),
            Err(FeatureError::Unsupported { .. }) => {}
            Err(error) => terminal::say_warning(&error.to_string()),
        }
    }
    Ok(all)
}

/// A line for the end of a message: the values that a server knows of an argument. `None` if it does not
/// say, or the one that is `given` is among them.
pub(super) async fn known_values(
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
    // A server that does not say is no reason for another error.
    let known = host.complete(server, wanted).await.ok()?;
    let mut own = given.iter().filter(|(name, _)| name == argument);
    if own.any(|(_, value)| known.values.contains(value)) {
        return None;
    }
    let all = known.values.len();
    let mut shown: Vec<String> = known
        .values
        .iter()
        .take(MOST_VALUES)
        .map(|value| one_line(value, 80))
        .collect();
    if shown.is_empty() {
        return None;
    }
    if known.has_more || all > MOST_VALUES {
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
