//! Our side of the protocol: who we are, and what we answer to a server's own requests.

#![allow(
    deprecated,
    reason = "servers of the older era still log, and ask for samples and roots"
)]

use std::sync::Arc;

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams,
        CreateMessageResult, ErrorData, Implementation, LoggingMessageNotificationParam,
        ProtocolVersion,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::sync::Notify;

/// One connection's client side. Elicitation, sampling and roots are not offered as capabilities;
/// a server that asks anyway is declined at once, so that it does not wait for a person who is not
/// asked.
pub(crate) struct ClientSide {
    server: String,
    tools_changed: Arc<Notify>,
    version: ProtocolVersion,
}

impl ClientSide {
    /// `version` is the one named in `initialize`.
    pub(crate) fn new(server: &str, tools_changed: Arc<Notify>, version: ProtocolVersion) -> Self {
        Self {
            server: server.to_owned(),
            tools_changed,
            version,
        }
    }
}

impl ClientHandler for ClientSide {
    // `create_elicitation` declines and `list_roots` answers with none, both as rmcp has them.

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(ErrorData::method_not_found::<CreateMessageRequestMethod>())
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        tracing::debug!(server = self.server, level = ?params.level, data = %params.data, "log");
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let identity = Implementation::new("switchboard", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), identity)
            .with_protocol_version(self.version.clone())
    }
}
