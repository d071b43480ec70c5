//! Errors of bundled servers.

use std::{io, net::SocketAddr, path::PathBuf};

use switchboard_domain::similar_names::did_you_mean;

/// An error that prevents a bundled server from starting or that ends it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The caller named a bundled server that does not exist.
    #[error(
        "unknown bundled server `{name}`{}. Available: {}",
        did_you_mean(*nearest),
        known.join(", ")
    )]
    UnknownServer {
        /// The server name that the caller gave.
        name: String,
        /// The bundled server with the most similar name, if there is one.
        nearest: Option<&'static str>,
        /// The names of all bundled servers.
        known: Vec<&'static str>,
    },
    /// A setting of a server is missing or invalid.
    #[error("server `{server}` cannot start: {problem}")]
    Setting {
        /// Name of the server that cannot start.
        server: &'static str,
        /// Description of the problem, and advice on how to solve it.
        problem: String,
    },
    /// The data file of a server cannot be opened or has the wrong content.
    #[error("the data file `{}` cannot be used: {problem}", path.display())]
    Data {
        /// Path of the data file.
        path: PathBuf,
        /// Description of the problem with the data file.
        problem: DataFileError,
    },
    /// The in-memory database of a server without a data file could not be created.
    #[error("failed to create the database in memory: {reason}")]
    Memory {
        /// Error message of the database library.
        reason: String,
    },
    /// The server cannot listen on `address`, for example because the address is in use or the user
    /// may not use it.
    #[error("cannot listen on {address}: {source}{}", listen_error_advice(source))]
    Listen {
        /// Address on which the server should listen.
        address: SocketAddr,
        /// Error of the operating system while opening the socket.
        source: io::Error,
    },
    /// The server does not start on `address`, because other machines can reach this address and no
    /// access token is set.
    #[error(
        "{address} is reachable from other machines, but no access token is configured: bind to \
         127.0.0.1, or set the variable `SWITCHBOARD_TOKEN`"
    )]
    Unguarded {
        /// Address on which the server should listen.
        address: SocketAddr,
    },
    /// The client violated the protocol before the session began.
    #[error("the client did not start a Model Context Protocol session: {reason}")]
    Handshake {
        /// Description of the protocol violation.
        reason: String,
    },
    /// The server ended without a shutdown request.
    #[error("the server ended unexpectedly: {reason}")]
    Ended {
        /// Description of the error that ended the server.
        reason: String,
    },
}

impl ServerError {
    /// Returns `true` if wrong input of the caller caused the error: a server name, a setting, a
    /// data file or an address. Returns `false` for all other errors.
    pub fn is_usage_error(&self) -> bool {
        !matches!(
            self,
            Self::Memory { .. } | Self::Handshake { .. } | Self::Ended { .. }
        )
    }
}

/// A reason why a data file cannot be used, with advice to the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DataFileError(pub(crate) String);

fn listen_error_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; choose another port, or 0 for any free port",
        io::ErrorKind::PermissionDenied => {
            "; choose a port of 1024 or higher, or 0 for any free port"
        }
        io::ErrorKind::AddrNotAvailable => "; no network interface has this address",
        _ => "",
    }
}
