//! The server's native HTTP routes, which are not compatible with the API of another vendor.

mod apps;
mod audit;
mod catalog;
mod chat;
pub(crate) mod page;
mod probes;
mod runs;
mod sessions;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// Returns the routes that need an access token if tokens are configured.
pub(crate) fn protected_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(chat::chat))
        .routes(routes!(sessions::create, sessions::list))
        .routes(routes!(
            sessions::show_session,
            sessions::rename,
            sessions::delete
        ))
        .routes(routes!(sessions::stream_session_events))
        .routes(routes!(runs::show_run))
        .routes(routes!(runs::stream_run_events))
        .routes(routes!(runs::decide))
        .routes(routes!(runs::answer))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::continue_run))
        .routes(routes!(audit::list))
        .routes(routes!(catalog::tools))
        .routes(routes!(catalog::servers))
        .routes(routes!(catalog::models))
        .routes(routes!(catalog::recipes))
        .routes(routes!(apps::list_pages))
        .routes(routes!(apps::read_page))
        .routes(routes!(probes::metrics))
}

/// Returns the routes that never need an access token.
pub(crate) fn public_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::readyz))
}
