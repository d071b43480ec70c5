//! Prints lists of resources, resource templates and prompts.

use serde::Serialize;
use switchboard_mcp_client::{FeatureError, ItemList, McpHost};

use crate::{
    commands::print_table,
    run_session::failure::{Code, Failure},
    terminal::{output::ListFormat, print_warning, to_one_line},
};

/// A resource, resource template or prompt in a list, with the name of its MCP server.
#[derive(Debug, Serialize)]
struct ItemWithServerName<T> {
    server: String,
    #[serde(flatten)]
    item: T,
}

/// Prints the items that `read` returns for each server. If there are no items, prints the text
/// `none` as a note.
///
/// A server that does not support this kind of item is skipped. A failed server causes a warning,
/// or an error if the user named this server.
pub(super) async fn print_server_features<T: Serialize, const N: usize>(
    host: &McpHost,
    is_named: bool,
    form: ListFormat,
    none: &str,
    read: impl AsyncFn(&str) -> Result<ItemList<T>, FeatureError>,
    row: impl Fn(String, &T) -> [String; N],
) -> Result<Code, Failure> {
    let mut items = Vec::new();
    for server in host.server_statuses().into_iter().map(|status| status.name) {
        let listing = match read(&server).await {
            Ok(listing) => listing,
            Err(error) if is_named => return Err(Failure::runtime_error(error)),
            Err(FeatureError::Unsupported { .. }) => continue,
            Err(error) => {
                print_warning(&error.to_string());
                continue;
            }
        };
        for problem in &listing.problems {
            print_warning(&format!("{server}: {problem}"));
        }
        items.extend(listing.items.into_iter().map(|item| ItemWithServerName {
            server: server.clone(),
            item,
        }));
    }
    print_table(form, &items, none, |it| {
        row(to_one_line(&it.server, 40), &it.item)
    })
}
