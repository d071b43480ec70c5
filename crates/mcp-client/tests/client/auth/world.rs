//! An MCP server and two authorization servers on loopback. They check requests as strictly as real
//! servers should, and record them.

mod issuer;
mod mcp;

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use axum::extract::State;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify, task::AbortHandle};

/// A tool that needs a further scope. The scope has the same name.
pub(crate) const MORE: &str = "files:write";

/// Settings of the servers that a test can change.
#[derive(Clone)]
pub(crate) struct Manners {
    /// The protected resource metadata at the well-known URL. `None`: the URL does not exist.
    pub(crate) resource: Option<Value>,
    /// Whether the `WWW-Authenticate` header contains the URL of the protected resource metadata.
    pub(crate) names_metadata: bool,
    /// Further parameters of the `WWW-Authenticate` header of a response with status 401.
    pub(crate) challenge: String,
    /// The path of the authorization server metadata.
    pub(crate) metadata_path: Option<&'static str>,
    /// Fields that replace fields of the authorization server metadata.
    pub(crate) metadata: Value,
    /// The lifetimes of the access tokens in seconds. Later tokens get the last one.
    pub(crate) lifetimes: Vec<u64>,
    pub(crate) gives_refresh_tokens: bool,
    /// The parameter `iss` of the redirect.
    pub(crate) iss: Option<String>,
    /// The error code that the authorization page returns instead of a code.
    pub(crate) denies: Option<&'static str>,
    /// Whether the MCP server needs no token.
    pub(crate) is_open: bool,
    /// Whether the MCP server rejects every token.
    pub(crate) takes_nothing: bool,
    /// Whether the MCP server requires more scopes than any token has.
    pub(crate) never_enough: bool,
    /// Whether the token endpoint returns an error.
    pub(crate) is_down: bool,
    /// The token endpoint signals the first value when a renewal begins, and then waits for the
    /// second one.
    pub(crate) slow_renewal: Option<[Arc<Notify>; 2]>,
}

/// The data of an access token on the MCP server.
struct Issued {
    scopes: HashSet<String>,
    until: Instant,
    resource: String,
    issuer: String,
}

struct Code {
    client: String,
    redirect_uri: String,
    challenge: String,
    resource: String,
    scopes: String,
}

struct Renewal {
    client: String,
    resource: String,
    scopes: String,
}

#[derive(Default)]
struct Books {
    next: usize,
    /// The number of issued access tokens.
    issued: usize,
    /// The secret, the authentication method and the redirect URIs of each client id.
    clients: HashMap<String, (Option<String>, String, Vec<String>)>,
    codes: HashMap<String, Code>,
    tokens: HashMap<String, Issued>,
    renewals: HashMap<String, Renewal>,
    /// All requests, for example `POST /token`.
    asked: Vec<String>,
    /// The parameters of each authorization request.
    pages: Vec<HashMap<String, String>>,
    /// The form of each token request.
    forms: Vec<HashMap<String, String>>,
    registrations: Vec<Value>,
    /// The bearer token of each request to the MCP endpoint.
    bearers: Vec<Option<String>>,
}

pub(crate) struct World {
    pub(crate) mcp: String,
    /// The issuer URL. It contains the path of `with_issuer_path`.
    pub(crate) issuer: String,
    pub(crate) other_issuer: String,
    manners: Mutex<Manners>,
    books: Mutex<Books>,
    running: Vec<AbortHandle>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.iter().for_each(AbortHandle::abort);
    }
}

type Shared = Arc<Served>;

/// The state of the request handlers. The test owns the world, so this reference is weak.
pub(crate) struct Served {
    world: Mutex<Option<std::sync::Weak<World>>>,
}

impl Served {
    fn world(&self) -> Arc<World> {
        let world = self.world.lock().unwrap();
        world.as_ref().unwrap().upgrade().unwrap()
    }
}

impl World {
    pub(crate) async fn new() -> Arc<Self> {
        Self::with_issuer_path("").await
    }

    /// Creates a world whose issuer URL has this path.
    pub(crate) async fn with_issuer_path(path: &str) -> Arc<Self> {
        let shared = Arc::new(Served {
            world: Mutex::default(),
        });
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (mut urls, mut running) = (Vec::new(), Vec::new());
        for app in [mcp::app(), issuer::app(), issuer::app()] {
            let listener = TcpListener::bind(any).await.unwrap();
            let address = listener.local_addr().unwrap();
            urls.push(format!("http://{address}"));
            let app = app.with_state((shared.clone(), format!("http://{address}")));
            let serving = tokio::spawn(async move { axum::serve(listener, app).await });
            running.push(serving.abort_handle());
        }
        let issuer = format!("{}{path}", urls[1]);
        let manners = Manners {
            resource: Some(json!({
                "resource": format!("{}/mcp", urls[0]),
                "authorization_servers": [issuer],
            })),
            names_metadata: true,
            challenge: String::new(),
            metadata_path: Some("/.well-known/oauth-authorization-server"),
            metadata: json!({}),
            lifetimes: vec![3600],
            gives_refresh_tokens: true,
            iss: None,
            denies: None,
            is_open: false,
            takes_nothing: false,
            never_enough: false,
            is_down: false,
            slow_renewal: None,
        };
        let world = Arc::new(Self {
            mcp: urls[0].clone(),
            issuer,
            other_issuer: urls[2].clone(),
            manners: Mutex::new(manners),
            books: Mutex::default(),
            running,
        });
        *shared.world.lock().unwrap() = Some(Arc::downgrade(&world));
        world
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.mcp)
    }

    pub(crate) fn manners(&self) -> MutexGuard<'_, Manners> {
        self.manners.lock().unwrap()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// Replaces fields of the authorization server metadata. `null` removes a field.
    pub(crate) fn set_metadata(&self, fields: Value) {
        self.manners().metadata = fields;
    }

    pub(crate) fn set_resource(&self, field: &str, value: Value) {
        self.manners().resource.as_mut().unwrap()[field] = value;
    }

    /// Adds a client that was registered before the test.
    pub(crate) fn add_client(&self, id: &str, secret: Option<&str>, method: &str) {
        let secret = secret.map(str::to_owned);
        let client = (secret, method.to_owned(), Vec::new());
        self.books().clients.insert(id.to_owned(), client);
    }

    /// Makes all issued access tokens invalid.
    pub(crate) fn end_access_tokens(&self) {
        self.books().tokens.clear();
    }

    pub(crate) fn end_refresh_tokens(&self) {
        self.books().renewals.clear();
    }

    pub(crate) fn forget_clients(&self) {
        self.books().clients.clear();
    }

    /// Returns the number of such requests, for example `POST /token`.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.books()
            .asked
            .iter()
            .filter(|asked| *asked == what)
            .count()
    }

    /// Returns the requests for well-known URLs in order.
    pub(crate) fn well_known(&self) -> Vec<String> {
        let books = self.books();
        let asked = books.asked.iter();
        asked
            .filter(|asked| asked.contains(".well-known"))
            .cloned()
            .collect()
    }

    pub(crate) fn pages(&self) -> Vec<HashMap<String, String>> {
        self.books().pages.clone()
    }

    pub(crate) fn forms(&self) -> Vec<HashMap<String, String>> {
        self.books().forms.clone()
    }

    /// Returns the token requests with this grant type.
    pub(crate) fn forms_of(&self, grant: &str) -> Vec<HashMap<String, String>> {
        let mut forms = self.forms();
        forms.retain(|form| form["grant_type"] == grant);
        forms
    }

    pub(crate) fn registrations(&self) -> Vec<Value> {
        self.books().registrations.clone()
    }

    pub(crate) fn bearers(&self) -> Vec<Option<String>> {
        self.books().bearers.clone()
    }

    pub(crate) fn refresh_tokens(&self) -> Vec<String> {
        self.books().renewals.keys().cloned().collect()
    }

    fn write_down(&self, method: &str, path: &str) {
        self.books().asked.push(format!("{method} {path}"));
    }
}

impl Books {
    fn fresh(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}-{}-0123456789", self.next)
    }
}

type Context = State<(Shared, String)>;
