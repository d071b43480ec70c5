//! Opens the session store that the configuration selects.

use std::sync::Arc;

use secrecy::ExposeSecret as _;
use switchboard_domain::{
    CallRateCounter, Principal, RunStore, Session, SessionId, SessionStore, SessionStoreError,
};
use switchboard_orchestration::policy::limits::SharedCallRates;
use switchboard_sessions::{Retention, Store, StoreOpenError, StoreOptions};

use crate::config::{Config, SessionsConfig, StoreLocation, environment::Environment};

const FILE_NAME: &str = "sessions.db";

/// Maximum number of sessions that are compared with an id prefix. Only the newest sessions are
/// compared.
const MAX_SESSIONS: u32 = 10_000;

/// The configured session store with its location for messages. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct OpenSessionStore {
    pub(crate) store: Arc<Store>,
    /// The location of the store for messages, without a password.
    pub(crate) place: Arc<str>,
}

/// An error of the whole session store or of the request for one session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionsError {
    /// The store needs the user's data folder, which the platform does not have.
    #[error(
        "this platform has no user data folder: set `sessions: {{store: FILE}}` in \
         switchboard.yaml"
    )]
    NoPlace,
    #[error(
        "cannot open the sessions in {place} (`sessions.store` in switchboard.yaml sets another \
         location)"
    )]
    Open {
        /// Location of the store for the message, without a password.
        place: String,
        #[source]
        source: Box<StoreOpenError>,
    },
    #[error("unknown session `{id}`. See `switchboard sessions`")]
    NotFound { id: String },
    /// Several sessions have ids that begin with this prefix.
    #[error("several sessions start with `{id}`: enter more of the id")]
    Ambiguous { id: String },
    #[error(transparent)]
    Store(#[from] SessionStoreError),
}

impl OpenSessionStore {
    /// Opens or creates the session store. Deletes the sessions that the configured retention no
    /// longer keeps. Needs a Tokio runtime.
    pub(crate) async fn open_and_prune(
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, SessionsError> {
        let sessions = Self::open_without_pruning(config, environment).await?;
        if let Some(retention) = session_retention(&config.sessions) {
            sessions.store.prune_sessions(&retention).await?;
        }
        Ok(sessions)
    }

    /// Opens the session store without deleting sessions. Returns `None` if the database file does
    /// not exist. A PostgreSQL database is always opened.
    pub(crate) async fn open_if_exists(
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<Self>, SessionsError> {
        match resolve_store_location(&config.sessions, environment) {
            Ok(StoreLocation::File(path)) if !path.exists() => return Ok(None),
            Err(SessionsError::NoPlace) => return Ok(None),
            _ => {}
        }
        Self::open_without_pruning(config, environment)
            .await
            .map(Some)
    }

    /// Opens or creates the session store. Does not delete sessions.
    pub(crate) async fn open_without_pruning(
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, SessionsError> {
        let (options, place) = match resolve_store_location(&config.sessions, environment)? {
            StoreLocation::File(path) => (
                StoreOptions::sqlite(path.clone()),
                path.display().to_string(),
            ),
            StoreLocation::Postgres(address) => (
                StoreOptions::postgres(address.expose_secret()),
                "the PostgreSQL database of `sessions.store`".to_owned(),
            ),
        };
        let store = Store::open(options)
            .await
            .map_err(|source| SessionsError::Open {
                place: place.clone(),
                source: Box::new(source),
            })?;
        Ok(Self {
            store: Arc::new(store),
            place: place.into(),
        })
    }

    pub(crate) fn session_store(&self) -> Arc<dyn SessionStore> {
        Arc::clone(&self.store) as Arc<dyn SessionStore>
    }

    /// Returns the counter of tool calls that all processes with this store share.
    pub(crate) fn call_rates(&self) -> SharedCallRates {
        SharedCallRates(Arc::clone(&self.store) as Arc<dyn CallRateCounter>)
    }

    pub(crate) fn run_store(&self) -> Arc<dyn RunStore> {
        Arc::clone(&self.store) as Arc<dyn RunStore>
    }

    /// Returns the session with this id, or the only session whose id begins with `id`. Returns an
    /// error if there is no such session or more than one.
    pub(crate) async fn find_session(
        &self,
        owner: &Principal,
        id: &str,
    ) -> Result<Session, SessionsError> {
        let whole_id = SessionId(id.to_owned());
        if let Some(found) = self.store.find_session(owner, &whole_id).await? {
            return Ok(found);
        }
        let all = self.store.list_sessions(owner, MAX_SESSIONS).await?;
        let mut fitting = all
            .into_iter()
            .filter(|session| !id.is_empty() && session.id.0.starts_with(id));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => Err(SessionsError::Ambiguous { id: id.to_owned() }),
            (None, _) => Err(SessionsError::NotFound { id: id.to_owned() }),
        }
    }

    pub(crate) async fn close_store(&self) {
        self.store.close().await;
    }
}

/// Returns the configured limits of age and number of sessions. `None` keeps all sessions.
pub(crate) fn session_retention(config: &SessionsConfig) -> Option<Retention> {
    let retention = Retention {
        unused_for: config.unused_session_retention(),
        at_most: config.keep_sessions.map(|it| it.get().into()),
    };
    (retention.unused_for.is_some() || retention.at_most.is_some()).then_some(retention)
}

/// Returns the location of the configured store. The default is a file in the user's data folder.
fn resolve_store_location(
    config: &SessionsConfig,
    environment: &Environment,
) -> Result<StoreLocation, SessionsError> {
    if let Some(place) = &config.store {
        return Ok(place.clone());
    }
    let folder = environment.data_dir.as_ref();
    let folder = folder.ok_or(SessionsError::NoPlace)?;
    Ok(StoreLocation::File(folder.join(FILE_NAME)))
}
