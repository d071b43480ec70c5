//! Connections to where a store is.

use std::{
    env,
    fs::{self, DirBuilder, OpenOptions},
    io,
    path::{Path, PathBuf},
    str::FromStr as _,
    time::Duration,
};

use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgSslMode},
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{
    OpenError, StoreOptions,
    database::{Connection, Readers, within},
    long_read::LongRead,
    options::{Location, PATIENCE},
    sqlite::Opening,
};

/// How long a transaction waits for the lock of another process that writes. Transactions take milliseconds. A client
/// of the HTTP server waits for this, so that it is short. Runs that are under way try again.
pub(crate) const BUSY: Duration = Duration::from_secs(3);

/// The same when a store is opened. Another process may be changing all tables then.
pub(crate) const BUSY_WITH_TABLES: Duration = Duration::from_secs(20);

/// How long it is left to whoever makes a new file.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// SQLite reads in parallel, and more would only wait for the same two or four cores.
const SQLITE_READERS: u32 = 4;

/// A server has a hundred connections by default, for all its clients.
const POSTGRES_READERS: u32 = 8;

/// How long a read waits for a connection, and a writer for a new one.
const CONNECT: Duration = Duration::from_secs(10);

/// Knows how to connect.
#[derive(Clone)]
pub(crate) enum Place {
    Sqlite {
        path: PathBuf,
        writer: Opening,
        reader: Box<SqliteConnectOptions>,
    },
    Postgres {
        options: Box<PgConnectOptions>,
        patience: Duration,
    },
}

impl Place {
    pub(crate) fn new(options: &StoreOptions) -> Result<Self, OpenError> {
        match &options.location {
            Location::Sqlite(path) => Ok(Self::Sqlite {
                path: path.clone(),
                writer: Opening::new(path.clone(), options.durability),
                reader: Box::new(reader(path)),
            }),
            Location::Postgres(url) => {
                // The error of the library may quote a part of the address.
                let parsed = PgConnectOptions::from_str(url).map_err(|_| OpenError::Address)?;
                let parsed = checking(parsed, url);
                let named = parsed.get_application_name().is_some();
                let parsed = if named {
                    parsed
                } else {
                    parsed.application_name("switchboard")
                };
                Ok(Self::Postgres {
                    options: Box::new(parsed.disable_statement_logging()),
                    patience: options.patience,
                })
            }
        }
    }

    /// A connection that writes. To a file, this blocks as what is done with it does.
    pub(crate) async fn connect(&self) -> Result<Connection, sqlx::Error> {
        Ok(match self {
            Self::Sqlite { writer, .. } => Connection::Sqlite(writer.open().await?),
            Self::Postgres { options, patience } => {
                let connection = connect(options, *patience).await?;
                Connection::Postgres(connection, *patience)
            }
        })
    }

    /// How long a transaction may take before its connection is given up.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            // Longer than waiting for another process.
            Self::Sqlite { .. } => PATIENCE,
            Self::Postgres { patience, .. } => *patience,
        }
    }

    /// A connection for one long read, which sees the store as it is now until it is dropped.
    pub(crate) async fn long_read(&self) -> Result<LongRead, sqlx::Error> {
        let mut connection = match self {
            Self::Sqlite { reader, .. } => {
                // Its rows may be large.
                let reader = (**reader).clone().row_buffer_size(1);
                LongRead::Sqlite(reader.connect().await?)
            }
            Self::Postgres { options, patience } => {
                LongRead::Postgres(connect(options, *patience).await?, *patience)
            }
        };
        connection.begin().await?;
        Ok(connection)
    }

    /// The connections that read. They are made when they are needed.
    pub(crate) fn readers(&self) -> Readers {
        match self {
            Self::Sqlite { reader, .. } => Readers::Sqlite(
                SqlitePoolOptions::new()
                    .max_connections(SQLITE_READERS)
                    .acquire_timeout(CONNECT)
                    // They are threads and a page cache each; made again in a millisecond.
                    .idle_timeout(Duration::from_mins(1))
                    .test_before_acquire(false)
                    .connect_lazy_with((**reader).clone()),
            ),
            Self::Postgres { options, patience } => Readers::Postgres(
                PgPoolOptions::new()
                    .max_connections(POSTGRES_READERS)
                    .acquire_timeout(CONNECT.min(*patience))
                    .connect_lazy_with((**options).clone()),
                *patience,
            ),
        }
    }

    /// How a transaction that writes begins. One that only asked for the lock at its first write could be
    /// refused in the middle.
    pub(crate) fn begin(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "BEGIN IMMEDIATE",
            Self::Postgres { .. } => "BEGIN",
        }
    }
}

async fn connect(
    options: &PgConnectOptions,
    patience: Duration,
) -> Result<PgConnection, sqlx::Error> {
    // It is large, and stands in what every transaction is made of.
    let connecting = Box::pin(options.connect());
    within(CONNECT.min(patience), connecting).await
}

/// Whoever names a certificate wants the server checked: `require` does not do that here as it does in PostgreSQL's
/// own clients.
fn checking(options: PgConnectOptions, url: &str) -> PgConnectOptions {
    const NAMES: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let keys = query.split('&').map(|pair| pair.split('=').next());
    let names_one = keys.flatten().any(|key| NAMES.contains(&key));
    let is_unchecked = matches!(options.get_ssl_mode(), PgSslMode::Require);
    if is_unchecked && (names_one || env::var_os("PGSSLROOTCERT").is_some()) {
        options.ssl_mode(PgSslMode::VerifyCa)
    } else {
        options
    }
}

fn reader(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(BUSY)
        .disable_statement_logging()
}

/// Makes the file and its folder, for this user alone, where they are missing.
pub(crate) fn make_private(path: &Path) -> Result<(), OpenError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::File { path, source }
    };
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        make_folder(folder).map_err(failed(folder))?;
    }
    // The files beside it (the log and its index) get the mode of this one from SQLite.
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(path)(error)),
        _ => Ok(()),
    }
}

/// Makes a folder that nobody else can look into, if it is not there.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// For files that nobody else can open.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// The folder beside a database of SQLite with the locks of those that have it open.
pub(crate) fn locks_beside(path: &Path) -> PathBuf {
    // Two paths to one file must come to one folder.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = path.into_os_string();
    name.push("-locks");
    name.into()
}
