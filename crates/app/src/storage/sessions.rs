//! The configured session store.

use std::{path::PathBuf, sync::Arc};

use secrecy::ExposeSecret as _;
use switchboard_domain::{
    Principal, RunStore, Session, SessionId, SessionStore, SessionStoreError,
};
use switchboard_sessions::{OpenError, Retention, Store, StoreOptions};

use crate::config::{Config, SessionsConfig, StorePlace, environment::Environment};

pub(crate) const FILE_NAME: &str = "sessions.db";

/// Maximum number of sessions that a search by prefix reads.
const MAX_SESSIONS: u32 = 10_000;

/// The session store. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    store: Arc<Store>,
    place: Arc<str>,
}

/// A session cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionsError {
    /// The platform has no data folder.
    #[error(
        "this platform has no folder for the data of users: name a file with `sessions: {{store: \
         FILE}}` in \
         switchboard.yaml"
    )]
    NoPlace,
    #[error(
        "the sessions in {place} cannot be opened; `sessions.store` in switchboard.yaml names \
         another place"
    )]
    Open {
        /// The location, without a password.
        place: String,
        #[source]
        source: Box<OpenError>,
    },
    #[error("unknown session `{id}`. See `switchboard sessions`")]
    NotFound { id: String },
    /// The prefix matches several sessions.
    #[error("several sessions begin with `{id}`: write more of the id")]
    Ambiguous { id: String },
    #[error(transparent)]
    Store(#[from] SessionStoreError),
}

impl Sessions {
    /// Opens or creates the store and deletes sessions beyond the configured retention. Needs a
    /// runtime.
    pub(crate) async fn open(
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, SessionsError> {
        let sessions = Self::open_unpruned(config, environment).await?;
        if let Some(retention) = retention(&config.sessions) {
            sessions.store.prune(&retention).await?;
        }
        Ok(sessions)
    }

    /// Opens the store if it exists. Creates and deletes nothing.
    pub(crate) async fn open_if_there(
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<Self>, SessionsError> {
        let file = match (&config.sessions.store, &environment.data_dir) {
            (Some(StorePlace::Postgres(_)), _) => None,
            (Some(StorePlace::File(path)), _) => Some(path.clone()),
            (None, Some(folder)) => Some(folder.join(FILE_NAME)),
            (None, None) => return Ok(None),
        };
        if file.is_some_and(|file| !file.exists()) {
            return Ok(None);
        }
        Self::open_unpruned(config, environment).await.map(Some)
    }

    /// Opens or creates the store without deleting sessions.
    pub(crate) async fn open_unpruned(
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, SessionsError> {
        let (options, place) = options(&config.sessions, environment)?;
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

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn as_sessions(&self) -> Arc<dyn SessionStore> {
        Arc::clone(&self.store) as Arc<dyn SessionStore>
    }

    pub(crate) fn as_runs(&self) -> Arc<dyn RunStore> {
        Arc::clone(&self.store) as Arc<dyn RunStore>
    }

    /// Returns the location for messages, without a password.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Returns the session with this id or prefix.
    pub(crate) async fn find(&self, owner: &Principal, id: &str) -> Result<Session, SessionsError> {
        if let Some(found) = self.store.get(owner, &SessionId(id.to_owned())).await? {
            return Ok(found);
        }
        let all = self.store.list(owner, MAX_SESSIONS).await?;
        let mut fitting = all
            .into_iter()
            .filter(|session| !id.is_empty() && session.id.0.starts_with(id));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => Err(SessionsError::Ambiguous { id: id.to_owned() }),
            (None, _) => Err(SessionsError::NotFound { id: id.to_owned() }),
        }
    }

    pub(crate) async fn close(&self) {
        self.store.close().await;
    }
}

/// Returns the configured retention. `None` keeps all sessions.
pub(crate) fn retention(config: &SessionsConfig) -> Option<Retention> {
    let retention = Retention {
        unused_for: config.unused_for(),
        at_most: config.keep_sessions.map(|it| it.get().into()),
        ..Retention::default()
    };
    (retention.unused_for.is_some() || retention.at_most.is_some()).then_some(retention)
}

fn options(
    config: &SessionsConfig,
    environment: &Environment,
) -> Result<(StoreOptions, String), SessionsError> {
    let file = |path: PathBuf| {
        let place = path.display().to_string();
        (StoreOptions::sqlite(path), place)
    };
    match &config.store {
        Some(StorePlace::File(path)) => Ok(file(path.clone())),
        Some(StorePlace::Postgres(address)) => Ok((
            StoreOptions::postgres(address.expose_secret()),
            "the PostgreSQL database of `sessions.store`".to_owned(),
        )),
        None => {
            let folder = environment
                .data_dir
                .as_ref()
                .ok_or(SessionsError::NoPlace)?;
            Ok(file(folder.join(FILE_NAME)))
        }
    }
}
