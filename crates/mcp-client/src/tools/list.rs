//! What tools a server has: all pages of its list, and what is wrong with some of them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use rmcp::{
    RoleClient,
    model::{
        ClientRequest, ErrorCode, ListToolsRequest, ListToolsRequestMethod, PaginatedRequestParams,
        ServerResult,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::Value;
use switchboard_domain::{
    ToolDefinition, check_depth,
    nearest::{did_you_mean, nearest},
};

use crate::{
    config::ServerConfig,
    features::list_cache::{Freshness, Hint},
    server::state::Server,
    tools::{
        convert::{self, Listed},
        output_schema::Promise,
        tool_pinning::fingerprint::fingerprint,
    },
    transport::http::Failure,
};

/// A server whose list is longer than this many pages has lost its way.
const MOST_PAGES: usize = 1000;

/// The tools that a server offers to models.
#[derive(Clone, Default)]
pub(crate) struct Tools {
    /// In the server's own order.
    pub(crate) definitions: Vec<Arc<ToolDefinition>>,
    /// Those that are for pages of MCP Apps and not for models, in the server's own order.
    pub(crate) app_only: Vec<Arc<ToolDefinition>>,
    /// What is missing, and why.
    pub(crate) problems: Vec<String>,
    /// How long all this is good for, where the server says it.
    pub(crate) freshness: Option<Freshness>,
    /// Own names of tools that pages may not call.
    not_for_apps: HashSet<String>,
    /// Where in `definitions` a tool is, by its name in the catalog.
    index: HashMap<String, usize>,
    /// By the tools' own names.
    pub(crate) fingerprints: HashMap<String, String>,
    /// What those promise that promise something, by their names in the catalog.
    promises: HashMap<String, Arc<Promise>>,
}

/// A tool, and what it promises about its results.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) promise: Option<Arc<Promise>>,
}

impl Tools {
    fn new(
        definitions: Vec<Arc<ToolDefinition>>,
        app_only: Vec<Arc<ToolDefinition>>,
        problems: Vec<String>,
    ) -> Self {
        let mut index = HashMap::new();
        for (at, tool) in definitions.iter().enumerate() {
            index.entry(tool.name.clone()).or_insert(at);
        }
        let promised = definitions.iter().chain(&app_only).filter_map(|tool| {
            let promise = Promise::of(tool)?;
            Some((tool.name.clone(), Arc::new(promise)))
        });
        Self {
            fingerprints: definitions
                .iter()
                .map(|tool| (own_name(tool).to_owned(), fingerprint(tool)))
                .collect(),
            promises: promised.collect(),
            index,
            definitions,
            app_only,
            problems,
            freshness: None,
            not_for_apps: HashSet::new(),
        }
    }

    /// Whether no two have the same name in the catalog.
    pub(crate) fn names_differ(&self) -> bool {
        self.index.len() == self.definitions.len()
    }

    /// By its name in the catalog.
    pub(crate) fn find(&self, name: &str) -> Option<Found> {
        let definition = self.definitions.get(*self.index.get(name)?)?;
        Some(self.found(definition))
    }

    /// By the server's own name for it; also one that is not for models.
    pub(crate) fn find_own(&self, name: &str) -> Option<Found> {
        let mut all = self.definitions.iter().chain(&self.app_only);
        let definition = all.find(|tool| own_name(tool) == name)?;
        Some(self.found(definition))
    }

    /// Whether pages of MCP Apps may not call a tool, by the server's own name for it.
    pub(crate) fn is_hidden_from_apps(&self, name: &str) -> bool {
        self.not_for_apps.contains(name)
    }

    fn found(&self, definition: &Arc<ToolDefinition>) -> Found {
        Found {
            definition: definition.clone(),
            promise: self.promises.get(&definition.name).cloned(),
        }
    }
}

/// Asks for every page. One bad tool is left out alone. Of a list that breaks off after its first
/// page what came is used, with a problem; an error is that nothing came.
pub(crate) async fn list(server: &Server, peer: &Peer<RoleClient>) -> Result<Tools, String> {
    let has_tools = peer
        .peer_info()
        .is_none_or(|about| about.capabilities.tools.is_some());
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut good_for: Option<Hint> = None;
    // Some servers do not say that they have tools and have them all the same, so all are asked.
    loop {
        let page = match page(server, peer, cursor.clone()).await {
            Ok(page) => page,
            Err(NoPage::NotSupported) if !has_tools => break,
            Err(no_page) => {
                let why = server.redactor.clean(no_page.into_reason());
                if cursor.is_none() {
                    return Err(why);
                }
                problems.push(format!("its list of tools is not complete: {why}"));
                break;
            }
        };
        // A list is as good as its worst page, and one of which a page says nothing is not good for any time.
        good_for = match (&cursor, good_for, page.hint) {
            (None, _, hint) => hint,
            (Some(_), Some(before), Some(hint)) => Some(before.and(hint)),
            _ => None,
        };
        for tool in page.tools {
            match tool {
                Ok(tool) => found.push(tool),
                Err(problem) => problems.push(problem),
            }
        }
        let Some(next) = page.next else { break };
        let known = cursors.len();
        if !cursors.insert(next.clone()) {
            problems.push(format!(
                "its list of tools does not end: the same page comes again after {known} pages"
            ));
            break;
        }
        if cursors.len() == MOST_PAGES {
            problems.push(format!(
                "its list of tools does not end: there are more than {MOST_PAGES} pages, and the rest \
                 is left out"
            ));
            break;
        }
        cursor = Some(next);
    }
    let problems = problems
        .into_iter()
        .map(|problem| server.redactor.clean(problem));
    let mut tools = offered(&server.config, found, problems.collect());
    tools.freshness = good_for.map(Freshness::new);
    Ok(tools)
}

/// What of all tools is offered, in the order given.
fn offered(config: &ServerConfig, found: Vec<Listed>, mut problems: Vec<String>) -> Tools {
    let own_names = found.iter().map(|listed| own_name(&listed.tool).to_owned());
    let own_names: Vec<String> = own_names.collect();
    for (key, names) in [
        (
            "allowed_tools",
            config.allowed_tools.as_deref().unwrap_or_default(),
        ),
        ("exclude_tools", config.exclude_tools.as_slice()),
    ] {
        for name in names.iter().filter(|name| !own_names.contains(name)) {
            let meant = nearest(name, own_names.iter().map(String::as_str));
            problems.push(format!(
                "`{key}` names `{name}`, a tool that it does not have{}",
                did_you_mean(meant)
            ));
        }
    }
    let mut names = HashSet::new();
    let mut definitions = Vec::new();
    let mut app_only = Vec::new();
    let mut not_for_apps = HashSet::new();
    for Listed { mut tool, audience } in found {
        let own_name = own_name(&tool).to_owned();
        let allowed = config
            .allowed_tools
            .as_ref()
            .is_none_or(|allowed| allowed.contains(&own_name));
        if !allowed || config.exclude_tools.contains(&own_name) {
            continue;
        }
        let schemas = [Some(&tool.input_schema), tool.output_schema.as_ref()];
        if let Err(too_deep) = schemas.into_iter().flatten().try_for_each(check_depth) {
            problems.push(format!(
                "a schema of tool `{own_name}` is {too_deep}, so the tool is left out"
            ));
            continue;
        }
        if !names.insert(own_name.clone()) {
            problems.push(format!("it lists `{own_name}` twice; the first one counts"));
            continue;
        }
        tool.sequential = config.sequential;
        if !audience.app {
            not_for_apps.insert(own_name);
        }
        if audience.model {
            definitions.push(Arc::new(tool));
        } else {
            app_only.push(Arc::new(tool));
        }
    }
    Tools {
        not_for_apps,
        ..Tools::new(definitions, app_only, problems)
    }
}

pub(crate) fn own_name(tool: &ToolDefinition) -> &str {
    tool.origin
        .as_ref()
        .map_or(&tool.name, |origin| &origin.tool)
}

struct Page {
    tools: Vec<Result<Listed, String>>,
    next: Option<String>,
    hint: Option<Hint>,
}

enum NoPage {
    /// It does not know the request.
    NotSupported,
    Failed(String),
}

impl NoPage {
    fn into_reason(self) -> String {
        match self {
            Self::NotSupported => "it does not know the request".to_owned(),
            Self::Failed(reason) => reason,
        }
    }
}

async fn page(
    server: &Server,
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<Page, NoPage> {
    // Not `Peer::list_tools`: of a page with one bad tool it gives nothing.
    let request = ListToolsRequest {
        method: ListToolsRequestMethod,
        params: cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor))),
        extensions: rmcp::model::Extensions::default(),
    };
    let answer = async {
        peer.send_request_with_option(
            ClientRequest::ListToolsRequest(request),
            PeerRequestOptions::no_options(),
        )
        .await?
        .await_response()
        .await
    };
    let name = server.config.name.as_str();
    match answer.await {
        Ok(ServerResult::ListToolsResult(page)) => Ok(Page {
            tools: page
                .tools
                .into_iter()
                .map(|tool| Ok(convert::tool(name, tool)))
                .collect(),
            next: page.next_cursor,
            hint: Hint::new(page.ttl_ms, page.cache_scope),
        }),
        Ok(other) => page_from_json(name, &serde_json::to_value(other).unwrap_or_default()),
        Err(error) => Err(no_page(&error)),
    }
}

/// A page that rmcp could not read as one, mostly for one bad tool.
fn page_from_json(server: &str, page: &Value) -> Result<Page, NoPage> {
    let Some(Value::Array(tools)) = page.get("tools") else {
        return Err(NoPage::Failed("its list of tools is none".to_owned()));
    };
    Ok(Page {
        tools: tools
            .iter()
            .map(|tool| convert::tool_from_json(server, tool))
            .map(|tool| tool.map_err(|why| format!("{why}, so it is left out")))
            .collect(),
        next: page
            .get("nextCursor")
            .and_then(Value::as_str)
            .map(str::to_owned),
        hint: Hint::of(page),
    })
}

fn no_page(error: &ServiceError) -> NoPage {
    match error {
        ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            NoPage::NotSupported
        }
        ServiceError::McpError(error) => {
            NoPage::Failed(format!("{} (code {})", error.message, error.code.0))
        }
        ServiceError::TransportSend(error) => NoPage::Failed(Failure::of(error).into_reason()),
        ServiceError::TransportClosed => NoPage::Failed("it closed the connection".to_owned()),
        other => NoPage::Failed(other.to_string()),
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
