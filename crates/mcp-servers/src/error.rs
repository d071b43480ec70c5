//! Errors of bundled servers.

use std::{io, net::SocketAddr, path::PathBuf};

use switchboard_domain::nearest::did_you_mean;

/// An error that prevents the start of a bundled server or ends it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No bundled server has this name.
    #[error(
        "there is no bundled server `{name}`{}; there are: {}",
        did_you_mean(*nearest),
        known.join(", ")
    )]
    UnknownServer {
        /// The given name.
        name: String,
        /// The most similar known name.
        nearest: Option<&'static str>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// A setting of this server is missing or wrong.
    #[error("the server `{server}` cannot start: {problem}")]
    Setting {
        /// The server.
        server: &'static str,
        /// The problem and its solution.
        problem: String,
    },
    /// The data file cannot be used.
    #[error("the data file `{}` cannot be used: {problem}", path.display())]
    Data {
        /// The path of the file.
        path: PathBuf,
        /// The problem.
        problem: DataProblem,
    },
    /// The database in memory could not be created.
    #[error("failed to create the database in memory: {reason}")]
    Memory {
        /// The message of the database.
        reason: String,
    },
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}: {source}{}", listen_advice(source))]
    Listen {
        /// The given address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// Other machines can reach the address, and no token is set.
    #[error(
        "{address} can be reached from other machines, and no access token is configured: bind to \
         127.0.0.1, or set the variable `SWITCHBOARD_TOKEN`"
    )]
    Unguarded {
        /// The address.
        address: SocketAddr,
    },
    /// The client violated the protocol before the session began.
    #[error("the client did not start a Model Context Protocol session: {reason}")]
    Handshake {
        /// The violation.
        reason: String,
    },
    /// The server ended without a shutdown request.
    #[error("the server ended unexpectedly: {reason}")]
    Ended {
        /// The cause.
        reason: String,
    },
}

impl ServerError {
    /// Returns whether the caller gave a wrong name, setting, file or address.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::UnknownServer { .. }
            | Self::Setting { .. }
            | Self::Data { .. }
            | Self::Listen { .. }
            | Self::Unguarded { .. } => true,
            Self::Memory { .. } | Self::Handshake { .. } | Self::Ended { .. } => false,
        }
    }
}

/// A problem of a data file, with its solution.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DataProblem(pub(crate) String);

fn listen_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; choose another port, or 0 for any free port",
        io::ErrorKind::PermissionDenied => {
            "; choose a port of 1024 or higher, or 0 for any free port"
        }
        io::ErrorKind::AddrNotAvailable => "; no network interface has this address",
        _ => "",
    }
}
