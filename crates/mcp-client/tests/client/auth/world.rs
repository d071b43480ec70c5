//! An MCP server and two authorization servers, all on loopback. They check what they are given as
//! strictly as real ones should, and write down what they were asked.

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

/// The name of the tool that needs more than the others.
pub(crate) const MORE: &str = "files:write";

/// How the servers behave.
#[derive(Clone)]
pub(crate) struct Manners {
    /// The document at the well-known address of the resource; `None`: there is none.
    pub(crate) resource: Option<Value>,
    /// Whether a challenge says where that is.
    pub(crate) names_metadata: bool,
    /// What else stands in a challenge of 401.
    pub(crate) challenge: String,
    /// Where the metadata of the authorization server are, below its address.
    pub(crate) metadata_path: Option<&'static str>,
    /// Instead of what stands in them.
    pub(crate) metadata: Value,
    /// Seconds; the last one goes on.
    pub(crate) lifetimes: Vec<u64>,
    pub(crate) gives_refresh_tokens: bool,
    /// `iss` of the redirect: nothing, or this.
    pub(crate) iss: Option<String>,
    /// Answers the authorization page with this instead of a code.
    pub(crate) denies: Option<&'static str>,
    /// The MCP server asks for no token.
    pub(crate) is_open: bool,
    /// The MCP server takes no token at all.
    pub(crate) takes_nothing: bool,
    /// The MCP server never finds enough scopes in a token.
    pub(crate) never_enough: bool,
    /// The token endpoint is out of order.
    pub(crate) is_down: bool,
    /// The token endpoint tells the first that there is a renewal, and waits for the second.
    pub(crate) slow_renewal: Option<[Arc<Notify>; 2]>,
}

/// A token, as the MCP server looks it up.
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
    /// How many access tokens there were.
    issued: usize,
    /// By client id: the secret, how it proves itself, and its redirects.
    clients: HashMap<String, (Option<String>, String, Vec<String>)>,
    codes: HashMap<String, Code>,
    tokens: HashMap<String, Issued>,
    renewals: HashMap<String, Renewal>,
    /// Everything that was asked, as `METHOD path`.
    asked: Vec<String>,
    /// Parameters of authorization requests.
    pages: Vec<HashMap<String, String>>,
    /// Forms sent to the token endpoint.
    forms: Vec<HashMap<String, String>>,
    registrations: Vec<Value>,
    /// The bearer tokens that came with requests for MCP.
    bearers: Vec<Option<String>>,
}

pub(crate) struct World {
    pub(crate) mcp: String,
    /// The issuer; with a path if `issuer_path` says so.
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

/// What the handlers share; the world itself is the test's.
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

    /// The issuer is at this path of its server.
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

    /// Sets what differs in the metadata of the authorization server; `null` takes a field away.
    pub(crate) fn set_metadata(&self, fields: Value) {
        self.manners().metadata = fields;
    }

    pub(crate) fn set_resource(&self, field: &str, value: Value) {
        self.manners().resource.as_mut().unwrap()[field] = value;
    }

    /// A client that somebody registered beforehand.
    pub(crate) fn add_client(&self, id: &str, secret: Option<&str>, method: &str) {
        let secret = secret.map(str::to_owned);
        let client = (secret, method.to_owned(), Vec::new());
        self.books().clients.insert(id.to_owned(), client);
    }

    /// Access tokens that are out are not good any more.
    pub(crate) fn end_access_tokens(&self) {
        self.books().tokens.clear();
    }

    pub(crate) fn end_refresh_tokens(&self) {
        self.books().renewals.clear();
    }

    pub(crate) fn forget_clients(&self) {
        self.books().clients.clear();
    }

    /// How often this was asked, such as `POST /token`.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.books()
            .asked
            .iter()
            .filter(|asked| *asked == what)
            .count()
    }

    /// What was asked of the well-known addresses, in order.
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

    /// The forms of this grant.
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
