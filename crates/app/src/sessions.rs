//! The store of conversations, as it is configured.

use std::{path::PathBuf, sync::Arc};

use secrecy::ExposeSecret as _;
use switchboard_domain::{
    Principal, RunStore, Session, SessionId, SessionStore, SessionStoreError,
};
use switchboard_sessions::{OpenError, Retention, Store, StoreOptions};

use crate::{
    config::{Config, SessionsConfig, StorePlace},
    environment::Environment,
};

/// The file in the user's data folder.
pub const FILE: &str = "sessions.db";

/// Sessions that are looked at to find the one that is meant by the beginning of its id.
const MOST: u32 = 10_000;

/// The store of conversations. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sessions {
    store: Arc<Store>,
    place: Arc<str>,
}

/// Why a conversation cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// There is no place for the user's data on this platform.
    #[error(
        "this platform has no folder for the data of users: name a file with `sessions: {{store: FILE}}` in \
         switchboard.yaml"
    )]
    NoPlace,
    /// The store cannot be opened.
    #[error(
        "the sessions in {place} cannot be opened; `sessions.store` in switchboard.yaml names another place"
    )]
    Open {
        /// Where, without a password.
        place: String,
        /// Why.
        #[source]
        source: Box<OpenError>,
    },
    /// There is no session of this id.
    #[error("there is no session `{id}`; `switchboard sessions` lists those there are")]
    NotFound {
        /// The id, or how it begins.
        id: String,
    },
    /// What is meant is not clear.
    #[error("several sessions begin with `{id}`: write more of the id")]
    Ambiguous {
        /// The beginning of an id.
        id: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] SessionStoreError),
}

impl Sessions {
    /// Opens the store that is configured, or the file in the user's data folder, and makes it where it is
    /// missing. What is kept no longer, by the configuration, is removed. Needs a runtime.
    pub async fn open(config: &Config, environment: &Environment) -> Result<Self, SessionsError> {
        let sessions = Self::open_unpruned(config, environment).await?;
        if let Some(retention) = retention(&config.sessions) {
            sessions.store.prune(&retention).await?;
        }
        Ok(sessions)
    }

    /// The same if there is one, and nothing is made or removed: for whoever only looks.
    pub async fn open_if_there(
        config: &Config,
        environment: &Environment,
    ) -> Result<Option<Self>, SessionsError> {
        let file = match (&config.sessions.store, &environment.data_dir) {
            (Some(StorePlace::Postgres(_)), _) => None,
            (Some(StorePlace::File(path)), _) => Some(path.clone()),
            (None, Some(folder)) => Some(folder.join(FILE)),
            (None, None) => return Ok(None),
        };
        if file.is_some_and(|file| !file.exists()) {
            return Ok(None);
        }
        Self::open_unpruned(config, environment).await.map(Some)
    }

    /// The same, and nothing is removed.
    pub async fn open_unpruned(
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

    /// The store itself.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// As a store of sessions.
    pub fn as_sessions(&self) -> Arc<dyn SessionStore> {
        Arc::clone(&self.store) as Arc<dyn SessionStore>
    }

    /// As a store of runs.
    pub fn as_runs(&self) -> Arc<dyn RunStore> {
        Arc::clone(&self.store) as Arc<dyn RunStore>
    }

    /// Where they are kept, for people; without a password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The session of this id, or the one whose id begins so.
    pub async fn find(&self, owner: &Principal, id: &str) -> Result<Session, SessionsError> {
        if let Some(found) = self.store.get(owner, &SessionId(id.to_owned())).await? {
            return Ok(found);
        }
        let all = self.store.list(owner, MOST).await?;
        let mut fitting = all
            .into_iter()
            .filter(|session| !id.is_empty() && session.id.0.starts_with(id));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => Err(SessionsError::Ambiguous { id: id.to_owned() }),
            (None, _) => Err(SessionsError::NotFound { id: id.to_owned() }),
        }
    }

    /// Closes the store properly.
    pub async fn close(&self) {
        self.store.close().await;
    }
}

/// What the configuration says of how long sessions are kept; `None` if they are kept for ever.
pub fn retention(config: &SessionsConfig) -> Option<Retention> {
    let retention = Retention {
        unused_for: config.unused_for(),
        at_most: config.keep_sessions.map(u64::from),
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
            Ok(file(folder.join(FILE)))
        }
    }
}
